import { documentHash } from '../../../platform/canonical-json.js';
import { backoffMs, waitOrAbort } from '../../../platform/process/retry.js';
import {
  countRanks,
  type GrantedClaim,
  type JobExecution,
  type TransitionOptions,
  type TransitionPatch,
} from '../../../state/index.js';
import { toRankError } from '../../shared/errors.js';
import { isGpuFault } from '../../shared/gpu-faults.js';
import { failuresPerSecond } from '../checkpoint/failure-rate.js';
import type { JobSession } from '../credentials/job-session.js';
import { isLeaseLoss } from '../lease/lease.js';
import { prepareRanks } from '../supervisor/local-rank-host.js';
import { type AttemptContext, emit, flushReports, type GenerationContext, localRanks } from './context.js';
import { currentJob, trainableJob } from './current-job.js';
import { type PreparedData, prepareData } from './data/prepare-data.js';
import { type AttemptError, describeError, rootCauseOf } from './failure.js';
import { cancel, exportWeights, fail, type Handover, isComplete, release, succeed } from './finish.js';
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
import type { RankInput } from './start-message.js';
import type { EndReason } from './stop-requests.js';

/** Time for which two workers that could not reach each other are not placed together. */
const AVOID_MS = 600_000;

/** Next move of an attempt: `over` when the job is finished, paused or queued again, `again` for another generation. */
type Verdict = 'over' | 'again';

type WorkingState = Parameters<JobExecution['transition']>[2];

/**
 * Attempt of a job: prepares the data, then runs generations of ranks from the newest checkpoint on, until the job is
 * finished or returned to the queue. An error costs one of `retry.max_errors`; a new checkpoint resets the count.
 */
export class Attempt {
  private readonly checkpoints: JobCheckpoints;
  private data: PreparedData | null = null;
  /**
   * AWS session of this attempt's processes on this machine; null before the first generation and without an attempt
   * role.
   */
  private session: JobSession | null = null;
  private lostWorkSeconds: number;
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
    this.lostWorkSeconds = ctx.job.lost_work_seconds;
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
      if (before !== null && (await this.recover(describeError(before))) === 'over') return;
      while ((await this.once()) === 'again') reporter.restarted();
    } finally {
      unwatch();
      await Promise.all([reporter.close(), logs.close(), this.session?.close(), this.data?.use.end()]);
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
      if (!placed) return await this.release({ reason: 'waiting_for_capacity', preempted: this.moving });
      const opened = { ...placed, session: await this.openSession() };
      // Later generations have their data.
      if (!this.data) endUnused = prepareRanks(this.ctx.deps, opened.session, localRanks(placed));
      const data = await prepareData(opened, this.interrupt.signal, this.data);
      this.data = data;
      const resume = await this.checkpoints.newest();
      const load = resume ? ownLoad(resume) : await openInitial(this.ctx);
      const counted = { samples: data.samples, continues: load?.continues ?? null };
      const ctx = { ...opened, job: await trainableJob(this.ctx, counted) };
      if (resume && isComplete(ctx.job.spec, resume)) return await this.succeed(ctx, resume);
      if (resume) checkTokens(resume, data.tokens_digest);
      const base = await openBase(this.ctx, resume);
      const present = { ...ctx, job: await currentJob(this.ctx, resume, counted) };
      return await this.settle(await this.train(present, { load, base }, data), load);
    } catch (error) {
      lease.lost.throwIfAborted();
      if (isLeaseLoss(error)) throw error;
      // A preparation that a stop request interrupted is no error.
      if (stops.ending) return this.conclude(stops.ending);
      if (this.interrupt.signal.aborted) return 'again';
      return this.recover(describeError(error));
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

  private async train(
    ctx: GenerationContext,
    sources: Pick<RankInput, 'load' | 'base'>,
    data: PreparedData,
  ): Promise<GenerationEnd> {
    this.moving = false;
    await this.enter('starting');
    const failureRate = failuresPerSecond(ctx.job, new Date());
    const { checkpoints } = this;
    const generation = new Generation(ctx, {
      checkpoints,
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
      case 'interrupted':
        return 'again';
      case 'stopped':
        return this.stopped(end);
      case 'bad_checkpoint':
        // A job's own checkpoint has older ones as fallback; an initial one has none.
        if (load && !load.resume) return this.fail(initialError(load, end.error));
        if (load?.resume) await this.checkpoints.reject(load.resume, end.error);
        return 'again';
      case 'unsaved':
        return this.fail(end.error);
      case 'failed':
        return this.recover(end.error);
    }
  }

  private async stopped(end: { cancelled: boolean; saved: boolean }): Promise<Verdict> {
    const { stops } = this.ctx;
    const reason = end.cancelled ? 'cancel' : stops.ending;
    this.moving = reason === null;
    if (reason === null && end.saved) {
      await this.enter('starting', { reason: stops.current ?? 'resize' });
      return 'again';
    }
    if (!end.saved && reason !== 'cancel') {
      const present = reason === 'pause' ? 'pausing' : reason === null ? 'recovering' : 'running';
      await this.loseWork(present, 'save_failed');
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
    if (reason === 'pause') return this.release({ to: 'paused', reason: 'user_request' });
    const why = reason === 'drain' ? deps.drain.reason : 'preempted';
    return this.release({ reason: why, preempted: true });
  }

  /** Returns the job, to its queue by default. */
  private async release(handover: Handover): Promise<Verdict> {
    await release(this.ctx, handover);
    return 'over';
  }

  /** Counts an error and prepares the next generation, or fails the job when the errors exceed `retry.max_errors`. */
  private async recover(error: AttemptError): Promise<Verdict> {
    const { deps, job, log, logs, stops } = this.ctx;
    if (error.code === 'node_lost') return this.replaceNode(error, 'node.lost');
    if (isGpuFault(error.code)) {
      deps.metrics.failed(error.code);
      return this.replaceNode(error, 'rank.lost');
    }
    if (error.code === 'credentials_unavailable')
      return this.replaceNode(error, 'attempt.error', deps.timing.restart.max_delay_ms);
    const errors = this.checkpoints.countError();
    const { code, message, rank, step } = error;
    deps.metrics.failed(code);
    log.warn({ code, rank, step, errors }, message);
    if (rank === null) logs.message(`${code}: ${message}`);
    await emit(this.ctx, rank === null ? 'attempt.error' : 'rank.lost', rootCauseOf(error), {
      root_cause: true,
    });
    if (error.deterministic || errors > job.spec.retry.max_errors) return this.fail(error);
    await this.loseWork('recovering', code, { world_size: null, error_count: errors });
    const delayMs = Math.round(backoffMs(deps.timing.restart, errors));
    await emit(this.ctx, 'attempt.retry', { code, errors, delay_ms: delayMs });
    logs.message(`retries in ${delayMs} ms; error ${errors} of ${job.spec.retry.max_errors} allowed`);
    // Other jobs may use the slots during a long backoff. A job with a pending stop request does not wait: the request
    // is served here.
    if (delayMs > deps.timing.restart_in_place_ms && !stops.ending)
      return this.release({ reason: code, delay_ms: delayMs });
    await waitOrAbort(delayMs, this.interrupt.signal);
    return 'again';
  }

  /**
   * Returns a job to its queue after a lost worker, a failed GPU or missing credentials, which are no errors of the
   * job.
   */
  private async replaceNode(error: AttemptError, event: string, delayMs?: number): Promise<Verdict> {
    const { log } = this.ctx;
    const { code: reason, message, worker_id } = error;
    log.warn({ ...rootCauseOf(error) }, message);
    const { leader } = this;
    const avoid: Handover['avoid'] =
      leader && worker_id && worker_id !== leader ? { pair: [leader, worker_id], ms: AVOID_MS } : undefined;
    const data = { ...rootCauseOf(error), ...(avoid && { avoided_seconds: AVOID_MS / 1000 }) };
    await emit(this.ctx, event, data, { root_cause: true });
    await this.loseWork('recovering', reason, { world_size: null });
    return this.release({ reason, delay_ms: delayMs, avoid });
  }

  private async fail(error: AttemptError): Promise<Verdict> {
    await this.checkpoints.sweepAtEnd();
    await this.checkpoints.retain(this.ctx.deps.timing.save.periodic);
    await fail(this.ctx, error, this.checkpoints.latest);
    return 'over';
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

  /** Enters a state from which the job continues at its newest checkpoint: the work since then is lost. */
  private async loseWork(state: WorkingState, reason: string, patch: TransitionPatch = {}): Promise<void> {
    this.lostWorkSeconds += this.checkpoints.unsavedSeconds();
    const { lostWorkSeconds } = this;
    await this.enter(state, { reason, patch: { ...patch, lost_work_seconds: lostWorkSeconds } });
  }

  /**
   * Enters the states of a run, without ranks, for a job whose last step is already saved: only they lead to success.
   */
  private async reachRunning(): Promise<void> {
    const { deps, lease } = this.ctx;
    const job = await lease.call((id) => deps.store.getJob(id));
    if (job?.state === 'provisioning') await this.enter('starting');
    await this.enter('running', { patch: { world_size: null } });
  }

  private async enter(state: WorkingState, options: TransitionOptions = { reason: null }): Promise<void> {
    const { deps, lease } = this.ctx;
    await lease.call((id, execution) => deps.store.transition(id, execution, state, options));
  }
}
