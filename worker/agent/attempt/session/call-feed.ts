import {
  type CalledMessage,
  type CallMessage,
  type LoadCallMessage,
  type LoadedMessage,
  type RankError,
  type SaveCallMessage,
  STEP_FLAGS,
} from '../../../../contracts/rank-protocol.js';
import { sumDigests } from '../../../../formats/checkpoint/digest.js';
import type { SavePace } from '../../../shared/save-pace.js';
import type { CompleteSave } from '../../checkpoint/save-collector.js';
import type { GenerationContext } from '../context.js';
import { type AttemptError, describeError } from '../failure.js';
import type { JobCheckpoints } from '../job-checkpoints.js';
import { newNonce } from '../start-message.js';
import { CallLoads } from './call-loads.js';
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
  calls: Omit<JobCalls, 'close' | 'finishedStep' | 'append' | 'untilAnswered'>;
  /** Null: clients write the calls. */
  writer: CallWriter | null;
  checkpoints: Pick<JobCheckpoints, 'latest' | 'latestStep' | 'answerSave' | 'verifyLoad'>;
  pace: SavePace;
}

/** Feeds the calls of a session to the ranks of a generation, and stores the results. */
export class CallFeed implements StepSource {
  private readonly results: CallResults;
  private readonly loads: CallLoads;
  /** Calls up to this number had results before the generation. */
  private readonly answered: number;
  private readonly reports = new Map<number, Map<number, CalledMessage>>();
  /** Parts of the result of rank 0's next report. */
  private parts: Uint8Array[] = [];
  private unwatch: () => void = () => undefined;
  private idle: NodeJS.Timeout | undefined;
  private isRunning = false;
  private flags = 0;
  private saveRequest = 0;
  /** Last call that the ranks may run, and the last one that all have run. */
  private until = 0;
  private done = 0;
  private step = 0;
  /** Step at which the newest save was ordered: the next one follows at a later step. */
  private orderedAt = -1;
  /** True until the save that was ordered has ended. */
  private isOrdered = false;
  /** Messages of the ranks that wait for the answer to a `save_call`. */
  private saveCalls: SaveCallMessage[] = [];

  /** @param first number of the last call that the state of the ranks includes */
  constructor(
    private readonly ctx: Pick<GenerationContext, 'deps' | 'job' | 'lease' | 'stops' | 'world_size'>,
    private readonly options: CallFeedOptions,
    first: number,
  ) {
    this.answered = options.calls.answered;
    this.until = first;
    this.done = first;
    this.results = new CallResults(options.calls, (error) => options.abandon(describeError(error)));
    this.loads = new CallLoads(ctx, options);
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

  onCall(rank: number, message: CallMessage): void {
    if (message.kind === 'result_part') this.parts.push(message.bytes);
    else if (message.kind === 'called') this.onCalled(rank, message);
    else if (message.kind === 'load_call') void this.onLoadCall(message);
    else void this.onSaveCall(message);
  }

  private onCalled(rank: number, message: CalledMessage): void {
    const { number, result: last } = message;
    const reports = this.reports.get(number) ?? new Map<number, CalledMessage>();
    const complete = last && Buffer.concat([...this.parts, last]);
    if (last) this.parts = [];
    this.reports.set(number, reports.set(rank, { ...message, result: complete }));
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

  refuses(error: RankError): boolean {
    return this.loads.refuse(error);
  }

  async verifyLoad(messages: readonly LoadedMessage[]): Promise<void> {
    try {
      await this.loads.verify(messages);
    } catch (error) {
      if (!this.loads.refuse(error)) this.options.abandon(describeError(error));
      throw error;
    }
  }

  /** The calls of a checkpoint are not run again, so their results must be stored. */
  async beforeCommit({ calls, step }: CompleteSave): Promise<Readonly<Record<string, number>>> {
    if (calls) await this.results.until(calls.number);
    return (await this.options.writer?.figuresAt(step)) ?? {};
  }

  saved({ step, save_request, cost }: CompleteSave): void {
    const { checkpoints, pace } = this.options;
    pace.saved(cost.stall_seconds);
    if (save_request >= this.saveRequest) this.saveRequest = 0;
    if (checkpoints.latest) this.results.saved(checkpoints.latest);
    this.onSaveEnd(step);
  }

  /** The agent that holds the lease now decides whether the state is saved. */
  notSaved(step: number, error: unknown): void {
    if (this.ctx.lease.lost.aborted) {
      this.results.giveUp();
      return;
    }
    this.options.pace.notSaved();
    this.results.notSaved(step, error);
    this.onSaveEnd(step);
  }

  async close(): Promise<void> {
    this.unwatch();
    clearTimeout(this.idle);
    this.isRunning = false;
    await this.results.close();
  }

  private async onLoadCall(message: LoadCallMessage): Promise<void> {
    const { tell, abandon } = this.options;
    try {
      tell({ kind: 'load_answer', error: await this.loads.open(message) });
    } catch (error) {
      abandon(describeError(error));
    }
  }

  /** Answers the ranks when all have asked. */
  private async onSaveCall(message: SaveCallMessage): Promise<void> {
    const { saveCalls } = this;
    saveCalls.push(message);
    if (saveCalls.length < this.ctx.world_size) return;
    this.saveCalls = [];
    const isBusy = saveCalls.some(({ is_busy }) => is_busy);
    try {
      const begins = await this.beginSave(message, isBusy);
      this.options.tell({ kind: 'save_answer', nonce: begins ? newNonce() : null });
    } catch {
      // The generation has ended.
    }
  }

  private async beginSave({ step, policy }: SaveCallMessage, isBusy: boolean): Promise<boolean> {
    const isPeriodic = policy === 'periodic';
    // The save behind the evaluation has its figures.
    if (isPeriodic && this.options.writer?.isEvaluated(step)) {
      this.isOrdered = false;
      return false;
    }
    const isSkipped = isPeriodic && isBusy && this.ctx.job.spec.checkpoint.on_busy === 'skip';
    if (!isSkipped && this.options.checkpoints.latestStep !== step)
      return this.results.beginSave(step, !isPeriodic);
    this.isOrdered = false;
    // The saves in progress order it again when they end.
    if (isSkipped) this.orderedAt = -1;
    return false;
  }

  private onSaveEnd(step: number): void {
    if (step >= this.orderedAt) this.isOrdered = false;
    this.announce();
  }

  private onDone(call: RunCall): void {
    const { calls, checkpoints, abandon } = this.options;
    const { number, step, result, digest } = call;
    this.done = number;
    this.step = step;
    this.loads.ended(number);
    if (number > this.answered) {
      this.results.add(call);
      // There was nothing to save if the checkpoint exists.
      if (result === null && checkpoints.latest?.step === step) this.results.saved(checkpoints.latest);
    } else if (digest !== null || result !== null)
      void calls.checkAgain(number, digest).catch((error: unknown) => abandon(describeError(error)));
    this.watchIdle();
    this.announce();
  }

  private onCounters(): void {
    this.watchIdle();
    this.announce();
  }

  /** Measures the time in which no call runs, also none that is run again, and none waits for its result. */
  private watchIdle(): void {
    const { calls } = this.options;
    const { stops, job } = this.ctx;
    clearTimeout(this.idle);
    const { session } = job.spec.train;
    if (calls.appended > Math.min(calls.answered, this.done)) stops.withdraw('idle');
    else if (session) this.idle = setTimeout(() => stops.request('idle'), 1000 * session.idle_seconds);
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
    if (save !== null) {
      this.isOrdered = true;
      this.orderedAt = this.step;
    }
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
    if (this.isOrdered || this.orderedAt === step) return null;
    if (saveRequest > 0) return saveRequest;
    return !isSaved && pace.isDue() ? 0 : null;
  }
}
