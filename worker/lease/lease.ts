import type { Execution } from '../../contracts/execution.js';
import { ZerofleetError } from '../../contracts/index.js';
import type { Logger } from '../../platform/logging/logging.js';
import type { Control, JobAttempts } from '../../state/index.js';
import { type Clock, monotonicClock } from '../common/clock.js';
import { codeOf, isRetryable } from '../common/errors.js';

export interface LeaseOptions {
  store: Pick<JobAttempts, 'renewLease'>;
  job_id: string;
  execution: Execution;
  lease_ms: number;
  log: Logger;
  /** Called with what people want, at every renewal. */
  onControl(control: Control): void;
  clock?: Clock;
}

/** Between tries of a write while the job store does not answer. */
const RETRY_MS = 250;

/**
 * The right to run an attempt. It is kept by renewing; it is lost when another worker took the job (`stale_epoch`) or
 * when the store did not answer for as long as the lease lasts, because then another worker may have it. `lost` is
 * aborted in that moment, and whatever depends on the lease must stop.
 */
export class Lease {
  readonly job_id: string;
  readonly execution: Execution;
  /** Its reason is the ZerofleetError that says why. */
  readonly lost: AbortSignal;

  private readonly abort = new AbortController();
  private readonly closed = new AbortController();
  private readonly clock: Clock;
  private readonly loop: Promise<void>;
  private expires_at: number;

  /** @param claimed_at the clock's time before the claim was sent: the store's clock can't have begun earlier */
  constructor(
    private readonly options: LeaseOptions,
    claimed_at: number,
  ) {
    this.job_id = options.job_id;
    this.execution = options.execution;
    this.lost = this.abort.signal;
    this.clock = options.clock ?? monotonicClock;
    this.expires_at = claimed_at + options.lease_ms;
    this.loop = this.renewForever();
  }

  /**
   * Calls the store, again and again while it does not answer, until the lease is lost.
   * @throws ZerofleetError the call's own when it can't be helped, or why the lease was lost
   */
  async call<T>(operation: (jobId: string, execution: Execution) => Promise<T>): Promise<T> {
    for (;;) {
      this.lost.throwIfAborted();
      try {
        return await operation(this.job_id, this.execution);
      } catch (error) {
        if (isLeaseLoss(error)) this.lose(error as Error);
        if (!isRetryable(error)) throw error;
        await this.clock.wait(RETRY_MS, this.lost);
      }
    }
  }

  /**
   * Asks the store whether the lease still holds: to be called before a write that no store can refuse. A process that was stopped
   * for longer than the lease lasts may go on with anything before its own clock tells it so. The reply says what people want now.
   * @throws ZerofleetError why it was lost
   */
  async confirm(): Promise<void> {
    const { store, lease_ms, onControl } = this.options;
    onControl(await this.call((jobId, execution) => store.renewLease(jobId, execution, lease_ms)));
  }

  /** Gives the lease up, as if it had been lost. */
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
    let pause_ms = lease_ms / 3;
    for (;;) {
      const left_ms = this.expires_at - this.clock.now();
      await this.clock.wait(Math.max(0, Math.min(pause_ms, left_ms)), stopped);
      if (stopped.aborted) return;
      if (this.clock.now() >= this.expires_at) {
        return this.lose(
          new ZerofleetError('stale_epoch', 'the lease ran out while the job store did not answer'),
        );
      }
      try {
        await this.renew();
        pause_ms = lease_ms / 3;
      } catch (error) {
        if (stopped.aborted) return;
        if (!isRetryable(error)) return this.lose(error as Error);
        log.warn({ err: error, job_id: this.job_id }, 'lease not renewed yet');
        pause_ms = RETRY_MS;
      }
    }
  }

  private async renew(): Promise<void> {
    const { store, lease_ms, onControl } = this.options;
    const asked_at = this.clock.now();
    const renewal = store.renewLease(this.job_id, this.execution, lease_ms);
    // A call that hangs longer than the lease lasts must not keep the ranks running.
    const control = await this.answerOf(renewal, this.expires_at - asked_at);
    this.expires_at = asked_at + lease_ms;
    onControl(control);
  }

  private async answerOf<T>(call: Promise<T>, ms: number): Promise<T> {
    const answered = new AbortController();
    const late = this.clock.wait(ms, answered.signal).then(() => {
      throw new ZerofleetError('job_store_unavailable', 'no answer while the lease lasted');
    });
    try {
      return await Promise.race([call, late]);
    } finally {
      answered.abort();
    }
  }
}

/** Whether an error says that this worker must let go of the job. */
export function isLeaseLoss(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'stale_epoch' || code === 'job_final' || code === 'job_not_found';
}
