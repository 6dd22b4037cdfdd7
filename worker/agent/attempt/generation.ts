import { ZerofleetError } from '../../../contracts/index.js';
import {
  type CallMessage,
  type ConnectedMessage,
  type LoadedMessage,
  type ShardFailedMessage,
  type ShardMessage,
  STEP_FLAGS,
  type SteppedMessage,
} from '../../../contracts/rank-protocol.js';
import { isBadCheckpoint, toRankError } from '../../shared/errors.js';
import { SaveCollector } from '../checkpoint/save-collector.js';
import { SaveEstimate } from '../preemption/save-estimate.js';
import { SkipEvents } from '../reporting/skip-events.js';
import type { LogLine } from '../supervisor/log-line.js';
import type { RankHost } from '../supervisor/rank.js';
import { type StepUse, World, type WorldEnd, type WorldListener } from '../supervisor/world.js';
import { emit, type GenerationContext, workerOf } from './context.js';
import { type AttemptError, describeError, describeRankEnd } from './failure.js';
import type { StepSource } from './session/step-source.js';
import { type StepsInput, stepsOf } from './session/steps-of.js';
import { newNonce, type RankInput, startMessage } from './start-message.js';
import type { StopReason } from './stop-requests.js';
import { assembleWorld } from './world-links.js';

/** End of a generation of ranks, as input to the attempt's next move. */
export type GenerationEnd =
  /** The training is complete, and its last step is saved. */
  | { kind: 'complete' }
  /** All ranks stopped at one step, as requested. `saved`: that step is the newest checkpoint. */
  | { kind: 'stopped'; cancelled: boolean; saved: boolean }
  /** Ended by a stop request before training, by a lost lease, or by a call that the next ranks refuse. */
  | { kind: 'interrupted' }
  | { kind: 'bad_checkpoint'; error: AttemptError }
  /** The training is complete, but no retry saved its last step. */
  | { kind: 'unsaved'; error: AttemptError }
  | { kind: 'failed'; error: AttemptError };

interface GenerationOptions extends RankInput, StepsInput {
  data_digest: string;
}

/** Runs the ranks of a job once, from their start until all have ended. */
export class Generation implements WorldListener {
  /** Null until all of its workers have joined. */
  private world: World | null = null;
  private readonly killed = new AbortController();
  private readonly saves: SaveCollector;
  private readonly steps: StepSource;
  private readonly background: Promise<unknown>[] = [];
  private running = false;
  /** True if the machine stops before a save could finish. */
  private saveSkipped = false;
  private readonly estimate = new SaveEstimate();
  private stopFlags = 0;
  private connected: ConnectedMessage | null = null;
  private readonly skips = new SkipEvents();
  private cancelTimer: NodeJS.Timeout | undefined;
  /** Reason for which this side killed the world. */
  private error: AttemptError | null = null;
  private saveError: AttemptError | null = null;

  constructor(
    private readonly ctx: GenerationContext,
    private readonly options: GenerationOptions,
  ) {
    this.steps = stepsOf(ctx, options, {
      tell: (message) => this.world?.broadcast(message),
      abandon: (error) => this.abandon(error),
    });
    this.saves = new SaveCollector({
      world_size: ctx.world_size,
      commit: async (save) => {
        const measured = await this.steps.beforeCommit(save);
        // An attempt that continues from this checkpoint does not repeat its steps, so it never reports them.
        await ctx.reporter.flushPresent();
        const evalLosses = { ...save.eval_losses, ...measured };
        await options.checkpoints.commit({ ...save, eval_losses: evalLosses }, this.writtenBy());
        this.steps.saved(save);
      },
      onFailed: (save, error) => {
        this.saveError = describeError(error, null, save.step);
        this.steps.notSaved(save.step, error);
        const { code, message } = toRankError(error);
        // Alarms match this line (infra/terraform/modules/observability).
        ctx.log.warn({ err: error, step: save.step, code }, 'checkpoint not saved');
        this.inBackground(emit(ctx, 'checkpoint.failed', { step: save.step, code, message }));
        // The last step is judged when the ranks have stopped.
        const isLast = save.step === ctx.job.spec.train.steps;
        if (save.early_stopping?.best_step === save.step && !isLast) this.abandon(this.saveError);
      },
    });
  }

  /** Resolves when no rank is left and every save is committed or abandoned. */
  async run(): Promise<GenerationEnd> {
    const { lease, stops } = this.ctx;
    const onLost = () => this.kill();
    lease.lost.addEventListener('abort', onLost, { once: true });
    if (lease.lost.aborted) onLost();
    const unwatch = stops.watch((reason) => this.onStop(reason));
    const unwatchSaves = stops.watchSaveRequests(() => this.sendFlags());
    try {
      const assembly = await assembleWorld(this.ctx, this.options.tokens_digest, this.killed.signal);
      return this.judge(await this.train(assembly.hosts).finally(() => assembly.close()));
    } catch (error) {
      if (this.killed.signal.aborted) return { kind: 'interrupted' };
      return { kind: 'failed', error: describeError(error) };
    } finally {
      unwatch();
      unwatchSaves();
      lease.lost.removeEventListener('abort', onLost);
      clearTimeout(this.cancelTimer);
    }
  }

  private async train(hosts: readonly RankHost[]): Promise<WorldEnd> {
    const nonce = newNonce();
    const ranks = hosts.map((host, rank) => ({
      start: startMessage(this.ctx, this.options, rank, nonce),
      host,
    }));
    this.world = new World({ ranks, listener: this });
    if (this.killed.signal.aborted) void this.world.kill();
    const end = await this.world.ended;
    await this.saves.settled();
    await this.steps.close();
    await Promise.all(this.background);
    return end;
  }

  /** Ends the generation with an error: a best checkpoint, or the result of a call, is missing. */
  private abandon(error: AttemptError): void {
    this.error ??= error;
    this.kill();
  }

  private kill(): void {
    this.killed.abort();
    void this.world?.kill();
  }

  onConnected(message: ConnectedMessage): void {
    this.connected = message;
    const { load } = this.options;
    const before = load?.resume?.manifest.numerics_fingerprint;
    const now = message.numerics_fingerprint;
    if (before !== undefined && before !== now)
      this.inBackground(emit(this.ctx, 'numerics.changed', { before, now }));
  }

  async verifyLoad(messages: LoadedMessage[]): Promise<void> {
    if (this.running) return this.steps.verifyLoad(messages);
    const { checkpoints, load, base } = this.options;
    try {
      const ranges = messages.flatMap((message) => message.ranges);
      if (load) await checkpoints.verifyLoad(load, ranges);
      if (load && base) await checkpoints.verifyBase(base, messages);
    } catch (error) {
      this.error = describeError(error);
      throw error;
    }
  }

  onRunning(step: number): void {
    this.running = true;
    this.steps.begin(step);
    const { deps, lease, stops, world_size } = this.ctx;
    this.options.checkpoints.restartLostWorkClock();
    this.inBackground(
      lease.call((jobId, execution) =>
        deps.store.transition(jobId, execution, 'running', { reason: null, patch: { world_size } }),
      ),
    );
    const { load } = this.options;
    if (load && !load.resume) this.inBackground(emit(this.ctx, 'init.loaded', load.event_data));
    this.inBackground(
      emit(this.ctx, 'training.started', { step, world_size, placements: this.ctx.placements }),
    );
    if (stops.current) this.onStop(stops.current);
    else this.sendFlags();
  }

  /** Sends the ranks their current flags and save request. */
  private sendFlags(): void {
    if (this.running) this.steps.control(this.stopFlags, this.ctx.stops.saveRequest);
  }

  onStepped(message: SteppedMessage, use: StepUse): void {
    const { world_size, job, reporter } = this.ctx;
    const samples = this.steps.metricsOf(message.step);
    reporter.stepped(message, { world_size, ...use, total_steps: job.spec.train.steps ?? null }, samples);
    this.ctx.deps.metrics.stepped(message);
    this.estimate.stepped(message);
    for (const { type, data } of this.skips.after(message)) this.inBackground(emit(this.ctx, type, data));
    const { step, evaluations } = message;
    for (const evaluation of evaluations)
      this.inBackground(emit(this.ctx, 'evaluation.finished', { step, ...evaluation }));
  }

  onCall(rank: number, message: CallMessage): void {
    this.steps.onCall(rank, message);
  }

  onShard(rank: number, message: ShardMessage): void {
    this.ctx.deps.metrics.shardStored(message);
    this.estimate.stored(rank, message);
    this.ctx.deps.drain.expectSave(this.estimate.saveMs ?? 0);
    this.saves.shard(rank, message);
  }

  onShardFailed(_rank: number, message: ShardFailedMessage): void {
    this.ctx.deps.metrics.shardFailed();
    this.saves.shardFailed(message);
  }

  onLine(rank: number, line: LogLine): void {
    this.ctx.logs.line(rank, line);
  }

  /** Before the first step there is nothing to save, so the ranks need not agree on a step. */
  private onStop(reason: StopReason): void {
    if (!this.running) {
      this.kill();
      return;
    }
    if (reason === 'drain' && !this.hasTimeToSave()) {
      this.saveSkipped = true;
      this.kill();
      return;
    }
    this.stopFlags = reason === 'cancel' ? STEP_FLAGS.cancel : STEP_FLAGS.pause;
    this.sendFlags();
    if (reason !== 'cancel') return;
    this.cancelTimer ??= setTimeout(() => this.kill(), this.ctx.deps.timing.cancel_grace_ms);
  }

  /**
   * Returns whether a save fits into the time that is left. If not, the job resumes sooner from its last checkpoint
   * when it is returned at once.
   */
  private hasTimeToSave(): boolean {
    const { leftMs } = this.ctx.deps.drain;
    if (this.estimate.fits(leftMs)) return true;
    this.inBackground(
      emit(this.ctx, 'checkpoint.skipped', { remaining_ms: leftMs, needed_ms: this.estimate.saveMs }),
    );
    return false;
  }

  private judge(end: WorldEnd): GenerationEnd {
    switch (end.kind) {
      case 'stopped':
        return this.judgeStop(end.step, end.flags);
      case 'lost': {
        const { rank, host, end: cause } = end;
        const worker = cause.kind === 'node_lost' && { worker_id: workerOf(this.ctx.placements, rank) };
        const error = { ...describeRankEnd(rank, host, cause), ...worker };
        return this.steps.refuses(error) ? { kind: 'interrupted' } : this.failed(error);
      }
      case 'killed':
        if (this.saveSkipped) return { kind: 'stopped', cancelled: false, saved: false };
        return this.error ? this.failed(this.error) : { kind: 'interrupted' };
    }
  }

  private failed(error: AttemptError): GenerationEnd {
    const isLoading = this.options.load !== null && !this.running;
    return { kind: isLoading && isBadCheckpoint(error.code) ? 'bad_checkpoint' : 'failed', error };
  }

  private judgeStop(step: number, flags: number): GenerationEnd {
    if (flags & STEP_FLAGS.cancel) return { kind: 'stopped', cancelled: true, saved: false };
    const saved = this.options.checkpoints.latestStep === step;
    if (flags !== 0) return { kind: 'stopped', cancelled: false, saved };
    if (saved) return { kind: 'complete' };
    return {
      kind: 'unsaved',
      error:
        this.saveError ??
        describeError(new ZerofleetError('checkpoint_save_failed', 'the last step was not saved')),
    };
  }

  private writtenBy() {
    if (!this.connected) throw new Error('a rank saved before it was connected');
    const { data_digest, tokens_digest } = this.options;
    const { job, world_size } = this.ctx;
    return { spec: job.spec, connected: this.connected, world_size, data_digest, tokens_digest };
  }

  /** Runs work in the background of the supervision. Failures are only logged; the lease decides what must stop. */
  private inBackground(work: Promise<unknown>): void {
    this.background.push(
      work.catch((error: unknown) =>
        this.ctx.log.warn({ err: error }, 'background write of a generation failed'),
      ),
    );
  }
}
