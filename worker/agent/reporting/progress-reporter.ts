import { gainOf, metricOf } from '../../../contracts/evaluation-metrics.js';
import type { PreferenceMetrics, ReportedProgress, ResolvedJobSpec } from '../../../contracts/index.js';
import type { SteppedMessage } from '../../../contracts/rank-protocol.js';
import type { Logger } from '../../../platform/logging/logging.js';
import type { JobExecution, JobStreams, MetricInput } from '../../../state/index.js';
import type { Lease } from '../lease/lease.js';
import type { StepUse } from '../supervisor/world.js';
import { BatchWriter } from './batch-writer.js';

interface ProgressReporterOptions {
  store: Pick<JobExecution, 'report'> & Pick<JobStreams, 'readSteps'>;
  lease: Lease;
  interval_ms: number;
  log: Logger;
  /** Evaluations of the job so far. */
  evaluations?: Evaluations | undefined;
  /** Determines which figures of evaluations are better. */
  train?: Pick<ResolvedJobSpec['train'], 'objective'> | undefined;
}

interface Evaluated {
  step: number;
  evaluations: readonly Pick<SteppedMessage['evaluations'][number], 'name' | 'loss'>[];
}

type Evaluations = NonNullable<ReportedProgress['evaluations']>;

/** Number of steps over which the speed is measured. */
const SPEED_WINDOW = 20;
/** Metrics of one write. */
const MAX_BATCH = 200;

/** Collects step results and writes them in batches. They stay pending while the job store does not answer. */
export class ProgressReporter {
  private readonly metrics: BatchWriter<MetricInput>;
  private readonly recent: { tokens: number; seconds: number }[] = [];
  private progress: ReportedProgress | null = null;
  private evaluations: Evaluations;
  /** The newest evaluation that ran behind its step. */
  private later: Evaluated = { step: 0, evaluations: [] };

  constructor(private readonly options: ProgressReporterOptions) {
    const { store, lease, interval_ms, log, evaluations = {} } = options;
    this.evaluations = evaluations;
    this.metrics = new BatchWriter({
      lease,
      interval_ms,
      max_batch: MAX_BATCH,
      write: (metrics, batch) => {
        const { progress } = this;
        return lease.call((jobId, execution) => store.report(jobId, execution, metrics, progress, { batch }));
      },
      refused_message: 'metrics refused',
      log,
    });
  }

  /** @param reinforcement metrics of the samples of the step; null without any */
  stepped(
    message: SteppedMessage,
    {
      world_size,
      memory_bytes,
      system,
      total_steps,
    }: StepUse & {
      world_size: number;
      /** Null for a session. */
      total_steps: number | null;
    },
    reinforcement: Record<string, number> | null = null,
  ): void {
    this.recent.push({ tokens: message.tokens, seconds: message.seconds.total });
    if (this.recent.length > SPEED_WINDOW) this.recent.shift();
    const tokens = message.total_tokens;
    const loss = finiteOrNull(message.loss);
    // A step that is run again has the evaluation that followed it.
    const { evaluations } = this.later.step === message.step ? this.later : message;
    this.evaluations = this.afterEvaluations({ step: message.step, evaluations });
    this.progress = this.progressAt(message, { total_steps, tokens, loss });
    this.metrics.add({
      step: message.step,
      loss,
      ...(message.aux_loss !== null && { aux_loss: finiteOrNull(message.aux_loss) }),
      ...(message.preference && { preference: finiteMeans(message.preference) }),
      ...(reinforcement && { reinforcement: { ...reinforcement, ...finiteOf(message.passes) } }),
      grad_norm: finiteOrNull(message.grad_norm),
      lr: message.lr,
      ...(message.trust_ratios.length > 0 && { trust_ratios: message.trust_ratios }),
      seconds: message.seconds,
      ...(evaluations.length > 0 && { eval_losses: lossesOf(evaluations) }),
      loss_scale: message.loss_scale,
      skipped_steps: message.skipped_steps,
      tokens,
      tokens_per_second: finiteOrNull(message.tokens / message.seconds.total),
      world_size,
      memory_bytes,
      ...(system && { system }),
      at: new Date().toISOString(),
    });
  }

  /**
   * Writes the metrics of a step again, with the figures of an evaluation that followed it. Resolves when they are
   * written: a worker that continues behind the evaluation does not report it.
   */
  async evaluated(step: number, figures: Readonly<Record<string, number>>): Promise<void> {
    const { store, lease } = this.options;
    const evaluations = Object.entries(figures).map(([name, loss]) => ({ name, loss }));
    this.later = { step, evaluations };
    this.evaluations = this.afterEvaluations(this.later);
    if (this.progress) this.progress = { ...this.progress, evaluations: this.evaluations };
    await this.flushPresent();
    const reported = await lease.call((id) => store.readSteps(id, null, MAX_BATCH, { from: step, to: step }));
    const newest = reported.at(-1);
    if (newest === undefined) return;
    const { seq: _seq, position: _position, kind: _kind, epoch: _epoch, ...metric } = newest;
    this.metrics.add({ ...metric, eval_losses: figures });
    await this.flushPresent();
  }

  /** Resets the speed for a new generation. Steps that it repeats have been reported. */
  restarted(): void {
    this.recent.length = 0;
  }

  /** Writes all pending metrics. Returns early, without an error, when the lease is lost. */
  flush(): Promise<void> {
    return this.metrics.flush();
  }

  /** Writes the metrics of all steps until now. Returns early, without an error, when the lease is lost. */
  flushPresent(): Promise<void> {
    return this.metrics.flushPresent();
  }

  /** Idempotent. */
  close(): Promise<void> {
    return this.metrics.close();
  }

  /** A repeated evaluation has the same loss, so it changes nothing of the best one. */
  private afterEvaluations({ step, evaluations }: Evaluated): Evaluations {
    const before = this.evaluations;
    const { train = {} } = this.options;
    const after = evaluations.map(({ name, loss: measured }): [string, Evaluations[string]] => {
      const loss = finiteOrNull(measured);
      const { best_step = null, best_loss = null } = before[name] ?? {};
      const isBest =
        loss !== null && (best_loss === null || gainOf(metricOf(name, train), loss, best_loss) > 0);
      return [
        name,
        { step, loss, ...(isBest ? { best_step: step, best_loss: loss } : { best_step, best_loss }) },
      ];
    });
    return after.length === 0 ? before : { ...before, ...Object.fromEntries(after) };
  }

  private progressAt(
    message: SteppedMessage,
    { total_steps, tokens, loss }: { total_steps: number | null; tokens: number; loss: number | null },
  ): ReportedProgress {
    const window = this.recent.reduce(
      (sum, { tokens, seconds }) => ({ tokens: sum.tokens + tokens, seconds: sum.seconds + seconds }),
      { tokens: 0, seconds: 0 },
    );
    const speed = finiteOrNull(window.tokens / window.seconds);
    return {
      step: message.step,
      tokens,
      loss,
      loss_scale: message.loss_scale,
      skipped_steps: message.skipped_steps,
      tokens_per_second: speed,
      padding: message.padding,
      ...(message.preference && { preference: finiteMeans(message.preference) }),
      ...(Object.keys(this.evaluations).length > 0 && { evaluations: this.evaluations }),
      ...(message.early_stopping && { early_stopping: message.early_stopping }),
      eta_seconds:
        total_steps === null
          ? null
          : finiteOrNull(((total_steps - message.step) * message.tokens) / (speed ?? 0)),
    };
  }
}

function lossesOf(evaluations: Evaluated['evaluations']): Record<string, number | null> {
  return Object.fromEntries(evaluations.map(({ name, loss }) => [name, finiteOrNull(loss)]));
}

/** Leaves NaN and infinity out, which JSON does not have. */
function finiteOf(values: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => Number.isFinite(value)));
}

function finiteMeans(means: PreferenceMetrics): PreferenceMetrics {
  const finite = Object.entries(means).map(([name, value]) => [
    name,
    value === null ? null : finiteOrNull(value),
  ]);
  return Object.fromEntries(finite) as PreferenceMetrics;
}

/** Returns null for NaN and infinity, which JSON does not have. */
function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
