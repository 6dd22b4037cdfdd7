import { backoffMs, waitOrAbort } from '../../../platform/process/retry.js';
import type { JobExecution, TransitionOptions, TransitionPatch } from '../../../state/index.js';
import { isGpuFault } from '../../shared/gpu-faults.js';
import { type AttemptContext, emit } from './context.js';
import { type AttemptError, rootCauseOf } from './failure.js';
import { fail, type Handover, release } from './finish.js';
import type { JobCheckpoints } from './job-checkpoints.js';

/** Time for which two workers that could not reach each other are not placed together. */
const AVOID_MS = 600_000;

/** Next move of an attempt: `over` when the job is finished, paused or queued again, `again` for another generation. */
export type Verdict = 'over' | 'again';

type WorkingState = Parameters<JobExecution['transition']>[2];

/** Decides what follows an error of an attempt: a new generation, the queue, or the failure of the job. */
export class Recovery {
  private lostWorkSeconds: number;

  constructor(
    private readonly ctx: AttemptContext,
    private readonly checkpoints: JobCheckpoints,
  ) {
    this.lostWorkSeconds = ctx.job.lost_work_seconds;
  }

  /** Counts an error and prepares the next generation, or fails the job when the errors exceed `retry.max_errors`. */
  async recover(error: AttemptError, interrupted: AbortSignal, leader: string | null): Promise<Verdict> {
    const { deps, job, log, logs, stops } = this.ctx;
    if (error.code === 'node_lost') return this.replaceNode(error, leader, 'node.lost');
    if (isGpuFault(error.code)) {
      deps.metrics.failed(error.code);
      return this.replaceNode(error, leader, 'rank.lost');
    }
    if (error.code === 'credentials_unavailable')
      return this.replaceNode(error, leader, 'attempt.error', deps.timing.restart.max_delay_ms);
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
    await waitOrAbort(delayMs, interrupted);
    return 'again';
  }

  /**
   * Returns a job to its queue after a lost worker, a failed GPU or missing credentials, which are no errors of the
   * job.
   */
  private async replaceNode(
    error: AttemptError,
    leader: string | null,
    event: string,
    delayMs?: number,
  ): Promise<Verdict> {
    const { log } = this.ctx;
    const { code: reason, message, worker_id } = error;
    log.warn({ ...rootCauseOf(error) }, message);
    const avoid: Handover['avoid'] =
      leader && worker_id && worker_id !== leader ? { pair: [leader, worker_id], ms: AVOID_MS } : undefined;
    const data = { ...rootCauseOf(error), ...(avoid && { avoided_seconds: AVOID_MS / 1000 }) };
    await emit(this.ctx, event, data, { root_cause: true });
    await this.loseWork('recovering', reason, { world_size: null });
    return this.release({ reason, delay_ms: delayMs, avoid });
  }

  async fail(error: AttemptError): Promise<Verdict> {
    await this.checkpoints.sweepAtEnd();
    await this.checkpoints.retain(this.ctx.deps.timing.save.periodic);
    await fail(this.ctx, error, this.checkpoints.latest);
    return 'over';
  }

  /** Returns the job, to its queue by default. */
  async release(handover: Handover): Promise<Verdict> {
    await release(this.ctx, handover);
    return 'over';
  }

  /** Enters a state from which the job continues at its newest checkpoint: the work since then is lost. */
  async loseWork(state: WorkingState, reason: string, patch: TransitionPatch = {}): Promise<void> {
    this.lostWorkSeconds += this.checkpoints.unsavedSeconds();
    const { lostWorkSeconds } = this;
    await this.enter(state, { reason, patch: { ...patch, lost_work_seconds: lostWorkSeconds } });
  }

  async enter(state: WorkingState, options: TransitionOptions = { reason: null }): Promise<void> {
    const { deps, lease } = this.ctx;
    await lease.call((id, execution) => deps.store.transition(id, execution, state, options));
  }
}
