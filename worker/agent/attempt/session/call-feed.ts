import { ZerofleetError } from '../../../../contracts/index.js';
import {
  type CalledMessage,
  type LoadCallMessage,
  type LoadedMessage,
  type RankError,
  STEP_FLAGS,
} from '../../../../contracts/rank-protocol.js';
import { sumDigests } from '../../../../formats/checkpoint/digest.js';
import type { ChecksummedFile } from '../../../../formats/checkpoint/verified-chunks.js';
import { codeOf, isBadCheckpoint, toRankError } from '../../../shared/errors.js';
import { readManifest } from '../../../shared/read-manifest.js';
import type { SavePace } from '../../../shared/save-pace.js';
import type { CompleteSave } from '../../checkpoint/save-collector.js';
import { type GenerationContext, retryStorage } from '../context.js';
import { type AttemptError, describeError } from '../failure.js';
import type { JobCheckpoints } from '../job-checkpoints.js';
import { CallResults, type RunCall } from './call-results.js';
import type { CallWriter } from './call-writer.js';
import type { JobCalls } from './job-calls.js';
import type { StepSource, Tell } from './step-source.js';

/** Calls that ranks may run before they follow a save or a stop: one in progress, and one that they read meanwhile. */
const AHEAD = 2;

/** What a feed does to the generation that it feeds. */
export interface FeedControl {
  tell: Tell;
  /** Ends it with an error. */
  abandon(error: AttemptError): void;
}

interface CallFeedOptions extends FeedControl {
  calls: JobCalls;
  /** Null: clients write the calls. */
  writer: CallWriter | null;
  checkpoints: JobCheckpoints;
  pace: SavePace;
}

/** Checkpoint that the ranks load for a call. */
interface OpenLoad {
  number: number;
  source: { directory: string };
  files: readonly ChecksummedFile[];
}

/** Feeds the calls of a session to the ranks of a generation, and stores the results. */
export class CallFeed implements StepSource {
  private readonly results: CallResults;
  /** Calls up to this number had results before the generation. */
  private readonly answered: number;
  private readonly reports = new Map<number, Map<number, CalledMessage>>();
  private unwatch: () => void = () => undefined;
  private idle: NodeJS.Timeout | undefined;
  private isRunning = false;
  private flags = 0;
  private saveRequest = 0;
  /** Last call that the ranks may run, and the last one that all have run. */
  private until = 0;
  private done = 0;
  private step = 0;
  /** Step at which the newest save was ordered. */
  private orderedAt: number | null = null;
  private load: OpenLoad | null = null;

  /** @param first number of the last call that the state of the ranks includes */
  constructor(
    private readonly ctx: GenerationContext,
    private readonly options: CallFeedOptions,
    first: number,
  ) {
    this.answered = options.calls.answered;
    this.until = first;
    this.done = first;
    this.results = new CallResults(options.calls, (error) => options.abandon(describeError(error)));
  }

  begin(step: number): void {
    this.step = step;
    this.isRunning = true;
    const { calls, writer, abandon } = this.options;
    this.unwatch = calls.watch(() => this.onCounters());
    this.onCounters();
    writer?.begin((error) => abandon(describeError(error)));
  }

  metricsOf(step: number): Record<string, number> | null {
    return this.options.writer?.metricsOf(step) ?? null;
  }

  control(flags: number, saveRequest: number): void {
    this.flags = flags;
    this.saveRequest = saveRequest;
    this.announce();
  }

  onCall(rank: number, message: CalledMessage | LoadCallMessage): void {
    if (message.kind === 'load_call') {
      void this.openLoad(message);
      return;
    }
    const { number } = message;
    const reports = this.reports.get(number) ?? new Map<number, CalledMessage>();
    this.reports.set(number, reports.set(rank, message));
    if (reports.size < this.ctx.world_size) return;
    this.reports.delete(number);
    const parts = [...reports.values()].flatMap(({ digest_part }) => digest_part ?? []);
    const result = reports.get(0)?.result ?? null;
    this.onDone({
      number,
      step: message.step,
      result,
      digest: parts.length === 0 ? null : sumDigests(parts),
    });
  }

  async verifyLoad(messages: readonly LoadedMessage[]): Promise<void> {
    const { load, options } = this;
    if (load === null) throw new ZerofleetError('internal_error', 'ranks loaded without a call');
    try {
      const ranges = messages.flatMap((message) => message.ranges);
      await options.checkpoints.verifyLoad(load, ranges);
    } catch (error) {
      // The state of the ranks is damaged. The next generation runs the calls before again, and refuses this one.
      if (isBadCheckpoint(codeOf(error) ?? '')) options.calls.refuse(load.number, toRankError(error));
      else options.abandon(describeError(error));
      throw error;
    }
  }

  /** The calls of a checkpoint are not run again, so their results must be stored. */
  async beforeCommit({ calls }: CompleteSave): Promise<void> {
    if (calls) await this.results.until(calls.number);
  }

  saved({ cost }: CompleteSave): void {
    const { checkpoints, pace } = this.options;
    pace.saved(cost.stall_seconds);
    if (checkpoints.latest) this.results.saved(checkpoints.latest);
    this.announce();
  }

  notSaved(step: number, error: unknown): void {
    this.results.notSaved(step, error);
  }

  async close(): Promise<void> {
    this.unwatch();
    clearTimeout(this.idle);
    this.isRunning = false;
    await this.results.close();
  }

  private onDone(call: RunCall): void {
    const { calls, checkpoints, abandon } = this.options;
    const { number, step, result, digest } = call;
    this.done = number;
    this.step = step;
    if (number > this.answered) this.results.add(call);
    else if (digest !== null || result !== null)
      void calls.checkAgain(number, digest).catch((error: unknown) => abandon(describeError(error)));
    // There was nothing to save if the checkpoint exists.
    if (result === null && checkpoints.latest?.step === step) this.results.saved(checkpoints.latest);
    this.announce();
  }

  private onCounters(): void {
    const { calls } = this.options;
    const { stops, job } = this.ctx;
    clearTimeout(this.idle);
    const { session } = job.spec.train;
    if (calls.appended > calls.answered) stops.withdraw('idle');
    else if (session) this.idle = setTimeout(() => stops.request('idle'), 1000 * session.idle_seconds);
    this.announce();
  }

  /** Tells the ranks which calls to run, and what follows them. A stop is the last message. */
  private announce(): void {
    if (!this.isRunning) return;
    const { calls, tell } = this.options;
    const { flags } = this;
    this.isRunning = flags === 0;
    const until =
      flags === 0 ? Math.max(this.until, Math.min(calls.appended, this.done + AHEAD)) : this.until;
    const save = flags === 0 ? this.dueSave() : null;
    if (until === this.until && flags === 0 && save === null) return;
    this.until = until;
    if (save !== null) this.orderedAt = this.step;
    tell({
      kind: 'calls',
      until,
      answered: this.answered,
      flags: save === null ? flags : STEP_FLAGS.checkpoint,
      save_request: save ?? this.saveRequest,
    });
  }

  /** Returns the request that a save answers, 0 for a save by time, or null if none is due. */
  private dueSave(): number | null {
    const { saveRequest, step } = this;
    const { checkpoints, pace } = this.options;
    const isSaved = checkpoints.latestStep === step;
    if (saveRequest > 0 && isSaved) {
      this.saveRequest = 0;
      void checkpoints
        .answerSave(saveRequest)
        .catch((error: unknown) => this.options.abandon(describeError(error)));
      return null;
    }
    if (this.orderedAt === step) return null;
    if (saveRequest > 0) return saveRequest;
    return !isSaved && pace.isDue() ? 0 : null;
  }

  /** Answers the ranks, and keeps the checkpoint while they read it. */
  private async openLoad({ number, checkpoint, directory }: LoadCallMessage): Promise<void> {
    const { tell, calls, abandon } = this.options;
    const { deps, job, lease } = this.ctx;
    try {
      const refusal = calls.refusalOf(number);
      if (refusal) return tell({ kind: 'load_answer', error: refusal });
      await lease.call(() => deps.store.holdCheckpoint(checkpoint, job.id));
      const { id, shards } = await retryStorage(this.ctx, () => readManifest(deps.objects, directory));
      this.load = { number, source: { directory }, files: shards };
      tell({ kind: 'load_answer', error: id === checkpoint ? null : missing(checkpoint) });
    } catch (error) {
      const { code, message } = toRankError(error);
      if (!isBadCheckpoint(code)) return abandon(describeError(error));
      tell({
        kind: 'load_answer',
        error: code === 'object_not_found' ? missing(checkpoint) : { code, message },
      });
    }
  }
}

function missing(checkpoint: string): RankError {
  return { code: 'checkpoint_not_found', message: `checkpoint ${checkpoint} does not exist any more` };
}
