import type { Execution } from '../../../contracts/execution.js';
import { ZerofleetError } from '../../../contracts/index.js';
import type { Logger } from '../../../platform/logging/logging.js';
import type { Control, JobAttempts } from '../../../state/index.js';
import { type Clock, monotonicClock } from '../../shared/clock.js';
import { codeOf, isRetryable } from '../../shared/errors.js';

interface LeaseOptions {
  store: Pick<JobAttempts, 'renewLease'>;
  job_id: string;
  execution: Execution;
  lease_ms: number;
  log: Logger;
  /** Called with the control data of every renewal. */
  onControl(control: Control): void;
  clock?: Clock;
}

/** Delay between retries of a write while the job store does not answer. */
const RETRY_MS = 250;

/**
 * Right to run an attempt, kept by renewals. It is lost when another worker has claimed the job (`stale_epoch`). It is
 * also lost when the store did not answer for the duration of the lease, because another worker may hold the job then.
 * `lost` is aborted at that moment, and all work that depends on the lease must stop.
 */
export class Lease {
  readonly jobId: string;
  readonly execution: Execution;
  /** Its reason is the ZerofleetError that ended the lease. */
  readonly lost: AbortSignal;

  private readonly abort = new AbortController();
  private readonly closed = new AbortController();
  private readonly clock: Clock;
  private readonly loop: Promise<void>;
  private expiresAt: number;

  /**
   * Starts renewing. @param claimedAt the clock's time before the claim was sent, because the store's period cannot
   * have begun earlier
   */
  constructor(
    private readonly options: LeaseOptions,
    claimedAt: number,
  ) {
    this.jobId = options.job_id;
    this.execution = options.execution;
    this.lost = this.abort.signal;
    this.clock = options.clock ?? monotonicClock;
    this.expiresAt = claimedAt + options.lease_ms;
    this.loop = this.renewForever();
  }

  /**
   * Calls the store, with retries while it does not answer, until the lease is lost.
   * @throws ZerofleetError the call's own if it is not retryable, or the reason for which the lease was lost
   */
  async call<T>(operation: (jobId: string, execution: Execution) => Promise<T>): Promise<T> {
    for (;;) {
      this.lost.throwIfAborted();
      try {
        return await operation(this.jobId, this.execution);
      } catch (error) {
        if (isLeaseLoss(error)) this.lose(error as Error);
        if (!isRetryable(error)) throw error;
        await this.clock.wait(RETRY_MS, this.lost);
      }
    }
  }

  /**
   * Confirms that the lease still holds. Call it before a write that the store cannot refuse. A process that was
   * stopped for longer than the lease may continue before its own clock reports the expiry. The reply contains the
   * control data.
   * @throws ZerofleetError the reason for which the lease was lost
   */
  async confirm(): Promise<void> {
    const { store, lease_ms, onControl } = this.options;
    onControl(await this.call((jobId, execution) => store.renewLease(jobId, execution, lease_ms)));
  }

  /** Gives up the lease, as if it had been lost. */
  lose(reason: Error): void {
    this.abort.abort(reason);
    this.closed.abort();
  }

  /** Stops renewing. Idempotent. */
  async close(): Promise<void> {
    this.closed.abort();
    await this.loop;
  }

  private async renewForever(): Promise<void> {
    const { lease_ms, log } = this.options;
    const stopped = this.closed.signal;
    let pauseMs = lease_ms / 3;
    for (;;) {
      const leftMs = this.expiresAt - this.clock.now();
      await this.clock.wait(Math.max(0, Math.min(pauseMs, leftMs)), stopped);
      if (stopped.aborted) return;
      if (this.clock.now() >= this.expiresAt) {
        return this.lose(
          new ZerofleetError('stale_epoch', 'the lease expired while the job store did not answer'),
        );
      }
      try {
        await this.renew();
        pauseMs = lease_ms / 3;
      } catch (error) {
        if (stopped.aborted) return;
        if (!isRetryable(error)) return this.lose(error as Error);
        log.warn({ err: error, job_id: this.jobId }, 'lease not renewed, retrying');
        pauseMs = RETRY_MS;
      }
    }
  }

  private async renew(): Promise<void> {
    const { store, lease_ms, onControl } = this.options;
    const requestedAt = this.clock.now();
    const renewal = store.renewLease(this.jobId, this.execution, lease_ms);
    // A call that hangs longer than the lease must not keep the ranks running.
    const control = await this.answerOf(renewal, this.expiresAt - requestedAt);
    this.expiresAt = requestedAt + lease_ms;
    onControl(control);
  }

  private async answerOf<T>(call: Promise<T>, ms: number): Promise<T> {
    const answered = new AbortController();
    const late = this.clock.wait(ms, answered.signal).then(() => {
      throw new ZerofleetError('job_store_unavailable', 'no reply before the lease expired');
    });
    try {
      return await Promise.race([call, late]);
    } finally {
      answered.abort();
    }
  }
}

/** Returns whether an error means that this worker lost the job. */
export function isLeaseLoss(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'stale_epoch' || code === 'job_final' || code === 'job_not_found';
}
