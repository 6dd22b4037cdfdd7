import { reinforcementOf, takesCalls } from '../../../job-document/index.js';
import { documentHash } from '../../../platform/canonical-json.js';
import { countRanks, type GrantedClaim } from '../../../state/index.js';
import { toRankError } from '../../shared/errors.js';
import { failuresPerSecond } from '../checkpoint/failure-rate.js';
import type { JobSession } from '../credentials/job-session.js';
import { isLeaseLoss } from '../lease/lease.js';
import { prepareRanks } from '../supervisor/local-rank-host.js';
import { type AttemptContext, emit, flushReports, type GenerationContext, localRanks } from './context.js';
import { currentJob, trainableJob } from './current-job.js';
import { type PreparedData, prepareData } from './data/prepare-data.js';
import { describeError } from './failure.js';
import { cancel, exportWeights, isComplete, succeed } from './finish.js';
import { Generation, type GenerationEnd } from './generation.js';
import { JobCheckpoints } from './job-checkpoints.js';
import { openBase } from './load/base-point.js';
import {
  checkTokens,
  initialError,
  type LoadPoint,
  type NewestPoint,
  openInitial,
  ownLoad,
} from './load/load-point.js';
import { Recovery, type Verdict } from './recovery.js';
import { RolloutDriver } from './reinforcement/rollout-driver.js';
import { JobCalls } from './session/job-calls.js';
import type { RankInput } from './start-message.js';
import type { EndReason } from './stop-requests.js';

/**
 * Attempt of a job: prepares the data, then runs generations of ranks from the newest checkpoint on, until the job is
 * finished or returned to the queue. An error costs one of `retry.max_errors`; a new checkpoint resets the count.
 */
export class Attempt {
  private readonly checkpoints: JobCheckpoints;
  private readonly recovery: Recovery;
  private data: PreparedData | null = null;
  /** Calls of the job; null before the first generation, and for a job that takes none. */
  private calls: JobCalls | null = null;
  /** Null before the first generation, and without reinforcement learning. */
  private driver: RolloutDriver | null = null;
  /**
   * AWS session of this attempt's processes on this machine; null before the first generation and without an attempt
   * role.
   */
  private session: JobSession | null = null;
  /** World size of the newest generation; null before the first. */
  private worldSize: number | null = null;
  /** Id of the worker that leads the newest generation. */
  private leader: string | null = null;
  /** True if the newest generation stopped for a new placement of the job. */
  private moving = false;
  /** Aborted by any reason to stop or by the loss of the lease: ends waits and preparations. */
  private interrupt = new AbortController();

  constructor(
    private readonly ctx: AttemptContext,
    private readonly claim: Pick<GrantedClaim, 'error_count' | 'placements'>,
  ) {
    this.checkpoints = new JobCheckpoints(ctx, claim.error_count);
    this.recovery = new Recovery(ctx, this.checkpoints);
  }

  /**
   * Runs until the job store has the outcome.
   * @param before error of the job that was found when it was claimed
   * @throws ZerofleetError `stale_epoch` when the lease is lost; nothing may be written for this attempt after that
   */
  async run(before: unknown = null): Promise<void> {
    const { lease, stops, reporter, logs } = this.ctx;
    const interrupt = () => this.interrupt.abort();
    lease.lost.addEventListener('abort', interrupt, { once: true });
    const unwatch = stops.watch(() => stops.ending && interrupt());
    try {
      if (before !== null && (await this.recover(before)) === 'over') return;
      while ((await this.once()) === 'again') reporter.restarted();
    } finally {
      unwatch();
      await Promise.all([
        reporter.close(),
        logs.close(),
        this.session?.close(),
        this.data?.use.end(),
        this.driver?.close(),
        this.calls?.close(),
      ]);
    }
  }

  private async once(): Promise<Verdict> {
    const { lease, stops } = this.ctx;
    let endUnused = () => {};
    try {
      if (stops.ending) return await this.conclude(stops.ending);
      // The reason for the interruption was withdrawn.
      if (this.interrupt.signal.aborted) this.interrupt = new AbortController();
      const placed = await this.placed();
      if (!placed)
        return await this.recovery.release({ reason: 'waiting_for_capacity', preempted: this.moving });
      const opened = { ...placed, session: await this.openSession() };
      // Later generations have their data.
      if (!this.data) endUnused = prepareRanks(this.ctx.deps, opened.session, localRanks(placed));
      const data = await prepareData(opened, this.interrupt.signal, this.data);
      this.data = data;
      const resume = await this.checkpoints.newest();
      const load = resume ? ownLoad(resume) : await openInitial(this.ctx);
      const counted = { samples: data.samples, continues: load?.continues ?? null };
      const ctx = { ...opened, job: await trainableJob(this.ctx, counted) };
      if (resume && isComplete(ctx.job.spec, resume, this.calls?.finishedStep ?? null))
        return await this.succeed(ctx, resume);
      if (resume) checkTokens(resume, data.tokens_digest);
      const base = await openBase(this.ctx, resume);
      if (takesCalls(ctx.job.spec.train)) this.calls ??= await JobCalls.open(this.ctx);
      const present = { ...ctx, job: await currentJob(this.ctx, resume, counted) };
      await this.drive(present, resume?.manifest.step ?? 0);
      return await this.settle(await this.train(present, { load, base }, data), load);
    } catch (error) {
      lease.lost.throwIfAborted();
      if (isLeaseLoss(error)) throw error;
      // A preparation that a stop request interrupted is no error.
      if (stops.ending) return this.conclude(stops.ending);
      if (this.interrupt.signal.aborted) return 'again';
      return this.recover(error);
    } finally {
      endUnused();
    }
  }

  /** Returns the placement of the next generation, or null if the job cannot continue here. */
  private async placed() {
    const { claim, ctx, worldSize: before } = this;
    if (ctx.deps.processes.problem !== null) return null;
    const placements = before === null ? claim.placements : await ctx.resizer.place();
    if (!placements) return null;
    const worldSize = countRanks(placements);
    this.worldSize = worldSize;
    this.leader = placements[0]?.worker_id ?? null;
    if (before !== null && before !== worldSize)
      await emit(ctx, 'ranks.changed', { from: before, to: worldSize });
    return { ...ctx, placements, world_size: worldSize };
  }

  /** Opens the session, which lasts as long as the attempt. */
  private async openSession(): Promise<JobSession | null> {
    const { deps, job, lease } = this.ctx;
    const { signal } = this.interrupt;
    const onFailed = (error: unknown) => void emit(this.ctx, 'credentials.failed', { ...toRankError(error) });
    this.session ??= (await deps.sessions?.open(job, { purpose: lease.execution, signal, onFailed })) ?? null;
    return this.session;
  }

  /** Prepares the driver of a job with reinforcement learning. */
  private async drive(ctx: GenerationContext, step: number): Promise<void> {
    if (this.calls === null || reinforcementOf(ctx.job.spec.train) === null) return;
    this.driver ??= new RolloutDriver({ ...this.ctx, job: ctx.job }, this.calls);
    await this.driver.prepare(step, this.interrupt.signal);
  }

  private async train(
    ctx: GenerationContext,
    sources: Pick<RankInput, 'load' | 'base'>,
    data: PreparedData,
  ): Promise<GenerationEnd> {
    this.moving = false;
    await this.recovery.enter('starting');
    const failureRate = failuresPerSecond(ctx.job, new Date());
    const { checkpoints, calls, driver } = this;
    const generation = new Generation(ctx, {
      checkpoints,
      calls,
      writer: driver,
      ...sources,
      failures_per_second: failureRate,
      ...data,
    });
    this.ctx.resizer.begin(ctx.world_size, documentHash(ctx.job.spec.train.overrides));
    return generation.run().finally(() => this.ctx.resizer.end());
  }

  private async settle(end: GenerationEnd, load: LoadPoint | null): Promise<Verdict> {
    this.ctx.lease.lost.throwIfAborted();
    switch (end.kind) {
      case 'complete':
        if (this.calls) this.calls.finishedStep = this.checkpoints.latestStep;
        return 'again';
      case 'interrupted':
        return 'again';
      case 'stopped':
        return this.stopped(end);
      case 'bad_checkpoint':
        // A job's own checkpoint has older ones as fallback; an initial one has none.
        if (load && !load.resume) return this.recovery.fail(initialError(load, end.error));
        if (load?.resume) await this.checkpoints.reject(load.resume, end.error);
        return 'again';
      case 'unsaved':
        return this.recovery.fail(end.error);
      case 'failed':
        return this.recovery.recover(end.error, this.interrupt.signal, this.leader);
    }
  }

  private recover(error: unknown): Promise<Verdict> {
    return this.recovery.recover(describeError(error), this.interrupt.signal, this.leader);
  }

  private async stopped(end: { cancelled: boolean; saved: boolean }): Promise<Verdict> {
    const { stops } = this.ctx;
    const reason = end.cancelled ? 'cancel' : stops.ending;
    this.moving = reason === null;
    if (reason === null && end.saved) {
      await this.recovery.enter('starting', { reason: stops.current ?? 'resize' });
      return 'again';
    }
    if (!end.saved && reason !== 'cancel') {
      const present = reason === 'pause' ? 'pausing' : reason === null ? 'recovering' : 'running';
      await this.recovery.loseWork(present, 'save_failed');
    }
    return reason === null ? 'again' : this.conclude(reason);
  }

  /** Ends the attempt for the given reason. Checkpoints stay. */
  private async conclude(reason: EndReason): Promise<Verdict> {
    const { deps, lease, stops } = this.ctx;
    await flushReports(this.ctx);
    await this.checkpoints.sweepAtEnd();
    // The job that requested the preemption may have been placed elsewhere or cancelled.
    if (reason === 'preempt') {
      await lease.confirm();
      if (stops.ending !== 'preempt') return 'again';
    }
    if (reason === 'cancel') {
      await this.checkpoints.retain(deps.timing.save.periodic);
      await cancel(this.ctx);
      return 'over';
    }
    if (reason === 'idle') return this.recovery.release({ to: 'paused', reason });
    if (reason === 'pause') return this.recovery.release({ to: 'paused', reason: 'user_request' });
    const why = reason === 'drain' ? deps.drain.reason : 'preempted';
    return this.recovery.release({ reason: why, preempted: true });
  }

  private async succeed(ctx: GenerationContext, resume: NewestPoint): Promise<Verdict> {
    const { signal } = this.interrupt;
    await this.reachRunning();
    const exported = await exportWeights(ctx, this.checkpoints, resume, signal);
    if (exported === null) return 'again';
    // Runs last, because an older checkpoint is the fallback if the newest is damaged.
    await this.checkpoints.retain(ctx.deps.timing.storage, signal);
    await succeed(ctx, resume, exported);
    return 'over';
  }

  /**
   * Enters the states of a run, without ranks, for a job whose last step is already saved: only they lead to success.
   */
  private async reachRunning(): Promise<void> {
    const { deps, lease } = this.ctx;
    const job = await lease.call((id) => deps.store.getJob(id));
    if (job?.state === 'provisioning') await this.recovery.enter('starting');
    await this.recovery.enter('running', { patch: { world_size: null } });
  }
}
