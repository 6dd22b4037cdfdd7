import { evaluationOf } from '../../contracts/evaluation-metrics.js';
import {
  type EarlyStoppingState,
  type Evaluation,
  type EvaluationRecord,
  type RankMessage,
  type RetryPolicy,
  STEP_FLAGS,
  type StartMessage,
  type SteppedMessage,
} from '../../contracts/rank-protocol.js';
import { afterEvaluation, hasStoppedEarly, isEvaluated, tokensPerStep } from '../../job-document/index.js';
import type { RankTrainer, StepResult } from '../shared/native/adapter.js';
import { type SavePace, savePace } from '../shared/save-pace.js';
import { requireProgress, SkippedRun } from './skipped-run.js';
import type { SnapshotWriter } from './snapshot-writer.js';
import { roundedSeconds } from './step-seconds.js';

interface TrainLoopOptions {
  trainer: RankTrainer;
  writer: SnapshotWriter;
  start: StartMessage;
  /** Steps already done. */
  first_step: number;
  /** State of early stopping after these steps; null without it. */
  early_stopping: EarlyStoppingState | null;
  /** Flags that the agent passes to the next step. */
  flags(): number;
  /** Number of the newest save request. */
  saveRequest(): number;
  /** Seconds of a monotonic clock. */
  now(): number;
  send(message: RankMessage): Promise<void>;
  onStep(result: Pick<StepResult, 'step' | 'sent'>): void;
}

export interface TrainLoopEnd {
  step: number;
  /** Agreed flags that stopped the training; 0 when it is complete. */
  flags: number;
}

/**
 * Trains until the last step, until evaluations no longer improve, or until the ranks agree to stop. Every decision
 * uses only values that are equal on all ranks: the step number, the losses of evaluations and the OR-ed flags. So all
 * ranks save the same steps and stop after the same one.
 */
export async function trainLoop(options: TrainLoopOptions): Promise<TrainLoopEnd> {
  const { trainer, start } = options;
  const { steps: total = 0 } = start.spec.train;
  let step = options.first_step;
  let { early_stopping } = options;
  const saves = new Saves(options);
  const skips = new SkippedRun();
  while (step < total) {
    const result = await trainer.step(options.flags() | saves.flags()).catch((error) => {
      throw skips.explain(error, step);
    });
    skips.after(result);
    step = result.step;
    options.onStep(result);
    const stop = result.stop & (STEP_FLAGS.pause | STEP_FLAGS.cancel);
    const evaluations =
      !(stop & STEP_FLAGS.cancel) && isEvaluated(start.spec.train, step)
        ? await evaluate(trainer, start)
        : [];
    early_stopping = stateAfter(early_stopping, step, evaluations, start);
    const record = { eval_losses: finiteLosses(evaluations), early_stopping };
    if (start.rank === 0) await options.send(steppedMessage(result, { evaluations, early_stopping }, start));

    if (stop & STEP_FLAGS.cancel) return { step, flags: stop };
    const isComplete = step === total || hasStoppedEarly(early_stopping, start.spec);
    requireProgress(result, start.spec.train, isComplete);
    if (stop || isComplete) {
      await saves.take(start.save.final, record);
      return { step, flags: isComplete ? 0 : stop };
    }
    // The best state is exported, so its save is never skipped.
    if (early_stopping?.best_step === step) await saves.take(start.save.final, record);
    else if (saves.isDue(result)) await saves.take(start.save.periodic, record);
  }
  return { step, flags: 0 };
}

/** Decides when this rank saves. Rank 0 passes clock and save requests, which other ranks do not know, to the steps. */
class Saves {
  private readonly pace: SavePace;
  private answered = 0;
  /** Save request that the current step carries. */
  private carried = 0;

  constructor(private readonly options: TrainLoopOptions) {
    const { spec, failures_per_second } = options.start;
    this.pace = savePace({ checkpoint: spec.checkpoint, failures_per_second, now: options.now });
  }

  /** Returns this rank's flags for the next step. */
  flags(): number {
    const { writer, start, saveRequest } = this.options;
    const skips = start.spec.checkpoint.on_busy === 'skip' && writer.busy;
    const busy = skips ? STEP_FLAGS.snapshots_busy : 0;
    if (start.rank !== 0) return busy;
    this.carried = saveRequest();
    const wanted = this.carried > this.answered || this.pace.isDue();
    return busy | (wanted ? STEP_FLAGS.checkpoint : 0);
  }

  /**
   * Returns whether to save, the same on all ranks. A requested save that a busy rank skips is repeated; a periodic one
   * is not.
   */
  isDue({ step, stop }: StepResult): boolean {
    if (stop & STEP_FLAGS.snapshots_busy) return false;
    const { every_steps } = this.options.start.spec.checkpoint;
    return (every_steps !== undefined && step % every_steps === 0) || (stop & STEP_FLAGS.checkpoint) !== 0;
  }

  async take(policy: RetryPolicy, record: EvaluationRecord): Promise<void> {
    const { writer, trainer } = this.options;
    const saveRequest = this.carried > this.answered ? this.carried : 0;
    this.answered = this.carried;
    this.pace.saved(
      await writer.save(trainer, policy, { save_request: saveRequest, calls: null, ...record }),
    );
  }
}

async function evaluate(trainer: RankTrainer, { evaluation_files }: StartMessage): Promise<Evaluation[]> {
  const evaluations: Evaluation[] = [];
  for (const [file, { name }] of evaluation_files.entries()) {
    const started = performance.now();
    const { preference, ...result } = await trainer.evaluate(file);
    const seconds = (performance.now() - started) / 1000;
    evaluations.push({ name, ...result, ...(preference && { preference }), seconds });
  }
  return evaluations;
}

function stateAfter(
  before: EarlyStoppingState | null,
  step: number,
  evaluations: readonly Evaluation[],
  { spec }: StartMessage,
): EarlyStoppingState | null {
  const { early_stopping } = spec.train;
  const judged = evaluations.find(({ name }) => name === evaluationOf(early_stopping?.metric ?? ''));
  if (before === null || judged === undefined || early_stopping === undefined) return before;
  return afterEvaluation(before, { step, loss: judged.loss }, early_stopping);
}

function steppedMessage(
  result: StepResult,
  evaluated: Pick<SteppedMessage, 'evaluations' | 'early_stopping'>,
  { spec: { train }, training_files }: StartMessage,
): RankMessage {
  const { step, loss, aux_loss, preference, grad_norm, lr } = result;
  const { trust_ratios, finite, skipped_steps, loss_scale } = result;
  const share = usefulShare(training_files);
  const tokens = Math.round(tokensPerStep(train) * share);
  return {
    kind: 'stepped',
    step,
    loss,
    aux_loss,
    preference,
    passes: {},
    grad_norm,
    lr,
    trust_ratios,
    tokens,
    total_tokens: step * tokens,
    padding: 1 - share,
    finite,
    skipped_steps,
    loss_scale,
    seconds: roundedSeconds(result.seconds),
    ...evaluated,
  };
}

/** Returns the mean share of the sequences of a step that is no padding. */
function usefulShare(files: StartMessage['training_files']): number {
  const sum = (of: (file: (typeof files)[number]) => number) =>
    files.reduce((total, file) => total + of(file), 0);
  return sum(({ weight, useful_share }) => weight * useful_share) / sum(({ weight }) => weight);
}

/** Leaves NaN and infinity out, which JSON does not have. */
function finiteLosses(evaluations: readonly Evaluation[]): Record<string, number> {
  const finite = evaluations.filter(({ loss }) => Number.isFinite(loss));
  return Object.fromEntries(finite.map(({ name, loss }) => [name, loss]));
}
