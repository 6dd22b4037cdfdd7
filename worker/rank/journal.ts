/**
 * Log of a rank: its messages to the agent as readable lines on standard output, and problems on standard error. It
 * wraps the channel, so that the training code does not depend on it.
 */

import { metricOf } from '../../contracts/evaluation-metrics.js';
import { epochOf } from '../../contracts/execution.js';
import type {
  AgentMessage,
  ConnectedMessage,
  LoadSource,
  LocalMessage,
  RankMessage,
  StartMessage,
  SteppedMessage,
} from '../../contracts/rank-protocol.js';
import type { RankChannel } from './channel.js';

/** Minimum interval of lines about steps; the first, the last and evaluated steps always get one. */
const STEP_LINE_MS = 5_000;

interface JournalOptions {
  info(line: string): void;
  warn(line: string): void;
  /** Milliseconds of a monotonic clock. */
  now(): number;
}

/** Writes to the standard streams of this process. */
export const processJournal: JournalOptions = {
  info: (line) => void process.stdout.write(`${line}\n`),
  warn: (line) => void process.stderr.write(`${line}\n`),
  now: () => performance.now(),
};

/** Returns the channel with a journal. */
export function withJournal(channel: RankChannel, options: JournalOptions): RankChannel {
  const journal = new Journal(options);
  return {
    send: (message) => {
      journal.sent(message);
      return channel.send(message);
    },
    onMessage: (handler) =>
      channel.onMessage((message) => {
        journal.received(message);
        handler(message);
      }),
    onDisconnect: (handler) => channel.onDisconnect(handler),
  };
}

class Journal {
  private start: StartMessage | null = null;
  private firstStep: number | null = null;
  private lineAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: JournalOptions) {}

  received(message: AgentMessage | LocalMessage): void {
    if (message.kind !== 'start') return;
    this.start = message;
    const { rank, world_size, threads, job_id, execution } = message;
    this.info(`rank ${rank} of ${world_size}`, { job: job_id, epoch: epochOf(execution), threads });
    if (rank === 0) this.info('job', documentFields(message));
  }

  sent(message: RankMessage): void {
    switch (message.kind) {
      case 'connected':
        this.connected(message);
        break;
      case 'loaded':
        this.info('loaded', loadFields(this.start?.load ?? null));
        break;
      case 'running':
        this.firstStep = message.step;
        this.info('training begins', { after_step: message.step });
        break;
      case 'stepped':
        this.stepped(message);
        break;
      case 'shard': {
        const { save, shard, cost } = message;
        const { stall_seconds, write_seconds } = cost;
        this.info('shard stored', { step: save.step, bytes: shard.bytes, stall_seconds, write_seconds });
        break;
      }
      case 'shard_failed': {
        const { save, error } = message;
        this.warn(`shard of step ${save.step} not stored: ${error.code}: ${error.message}`);
        break;
      }
      case 'stopped':
        this.info('training ends', { after_step: message.step });
        break;
      case 'failed':
        this.warn(`rank failed: ${message.error.code}: ${message.error.message}`);
        break;
    }
  }

  private connected({ params, numerics_fingerprint }: ConnectedMessage): void {
    if (this.start?.rank === 0) {
      const trained = params.filter(({ frozen }) => !frozen);
      const count = (some: typeof params) => sum(some.map(({ numel }) => numel));
      const { quantization: base } = this.start.spec.model;
      const sizes = { parameters: count(params), trained: count(trained), tensors: params.length };
      this.info('model', { ...sizes, ...(base && { base }) });
    }
    this.info('connected', { kernels: numerics_fingerprint });
  }

  private stepped(message: SteppedMessage): void {
    const { step, finite, skipped_steps, loss_scale, evaluations } = message;
    if (!finite)
      this.warn(
        `step ${step} skipped: its gradients were not finite${fields({ loss_scale, skipped_steps })}`,
      );
    const total = this.start?.spec.train.steps;
    const { now } = this.options;
    const isEdge = step === (this.firstStep ?? 0) + 1 || step === total || evaluations.length > 0;
    if (!isEdge && now() - this.lineAt < STEP_LINE_MS) return;
    this.lineAt = now();
    const { loss, aux_loss, preference, grad_norm, lr, tokens } = message;
    const seconds = message.seconds.total;
    const tokensPerSecond = Math.round(tokens / seconds);
    this.info(total === undefined ? `step ${step}` : `step ${step} of ${total}`, {
      loss,
      ...(aux_loss !== null && { aux_loss }),
      ...(preference && { margin: preference.margin, accuracy: preference.accuracy }),
      grad_norm,
      lr,
      tokens_per_second: tokensPerSecond,
      seconds,
      ...Object.fromEntries(
        evaluations.map((evaluation) => [metricOf(evaluation.name, {}), evaluation.loss]),
      ),
      ...(loss_scale !== 1 && { loss_scale }),
    });
  }

  private info(text: string, values: Fields): void {
    this.options.info(text + fields(values));
  }

  private warn(text: string): void {
    // Each message stays on one line.
    this.options.warn(text.replaceAll(/\s*\n\s*/g, ' | '));
  }
}

type Fields = Record<string, string | number | null | undefined>;

/** Formats ` name=value …` as logfmt; numbers with four significant digits. */
function fields(values: Fields): string {
  return Object.entries(values)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => ` ${name}=${typeof value === 'number' ? short(value) : value}`)
    .join('');
}

function short(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function documentFields({ spec }: StartMessage): Fields {
  const { train, zero, model } = spec;
  return {
    model: model.config.model_type,
    steps: train.steps,
    global_batch_size: train.global_batch_size,
    micro_batch_size: train.micro_batch_size,
    sequence_length: train.sequence_length,
    objective: train.objective?.type,
    optimizer: train.optimizer.type,
    precision: train.precision,
    zero_stage: zero.stage,
  };
}

function loadFields(load: LoadSource | null): Fields {
  return load === null ? {} : { from: load.kind, directory: load.directory, restore: load.restore };
}
