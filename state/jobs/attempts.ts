import type { Execution } from '../../contracts/execution.js';
import type { Job, ZerofleetError } from '../../contracts/index.js';
import { randomPiece } from '../../platform/random.js';
import { jobKey, nowText, redisCall, type StoreContext } from '../core/context.js';
import type { Unsubscribe } from '../core/subscriptions.js';
import { CONTROL_FIELDS, type Control, controlFields, controlOf } from './control.js';
import { type ClaimedFields, claimOf, jobOf, type RecordReply } from './record.js';

/** Reason why a claim was refused. Only `lease_held` is worth a retry. */
type ClaimRefusal = 'job_not_found' | 'job_final' | 'attempt_superseded' | 'job_paused' | 'lease_held';

export type ClaimResult = GrantedClaim | RefusedClaim;

interface RefusedClaim {
  granted: false;
  code: ClaimRefusal;
  retry_after_ms: number;
}

export interface GrantedClaim extends ClaimedFields {
  granted: true;
  job: Job;
}

export interface ReleaseOptions {
  to: 'queued' | 'paused';
  reason?: string | null;
  /** Delay until the next attempt is due. Until then the job waits without a position in the queue. */
  delay_ms?: number;
  /**
   * The job was preempted, or its machine is about to end: counts against `retry.preemptions`. A job that was preempted
   * more often is paused (`preemption_limit`).
   */
  preempted?: boolean;
  /** Two workers that could not connect to each other: the job is not placed on both for `ms`. */
  avoid?: { pair: readonly [string, string]; ms: number };
}

export interface ClaimOptions {
  /**
   * Claims the slots that the scheduler allocated to the job on this worker; otherwise the claim is a lease without
   * slots.
   */
  allocated?: boolean;
  /** Price of one rank per hour; 0 when absent. */
  price_per_rank_hour?: number;
}

/** Length of a claim's token. */
const TOKEN_BYTES = 6;
/** Jobs requeued per call, which bounds the run time of the command. */
const REQUEUE_BATCH = 100;

const CLAIM_REFUSALS: readonly string[] = [
  'job_not_found',
  'job_final',
  'attempt_superseded',
  'job_paused',
  'lease_held',
] satisfies ClaimRefusal[];

/** Leases and epochs of jobs. */
export type JobAttempts = ReturnType<typeof jobAttempts>;

export function jobAttempts(context: StoreContext) {
  const { commands } = context;
  return {
    /**
     * Takes the lease on an attempt and begins a new epoch and execution. A queued job becomes
     * `provisioning`; one whose worker was lost becomes `recovering`; pending requests (`pausing`,
     * `cancelling`) stay. The same worker may claim again at any time, another worker only after the lease
     * has expired.
     *
     * A claim with `allocated` holds the slots of the allocation as long as the lease. If the allocation is
     * for another worker, or has ended, the claim is refused with `attempt_superseded`.
     */
    async claimAttempt(
      jobId: string,
      attempt: number,
      workerId: string,
      leaseMs: number,
      { allocated, price_per_rank_hour }: ClaimOptions = {},
    ): Promise<ClaimResult> {
      try {
        const reply = await commands.run('claim_attempt', {
          job_id: jobId,
          attempt,
          worker: workerId,
          token: randomPiece(TOKEN_BYTES).toString('hex'),
          lease_ms: leaseMs,
          price_per_rank_hour,
          allocated,
          at: nowText(),
        });
        const record = reply as RecordReply;
        return { granted: true, job: jobOf(record), ...claimOf(record) };
      } catch (error) {
        return refusal(error);
      }
    },

    /**
     * Renews the lease. The reply carries the control state, so a lost message is caught up at the next
     * heartbeat.
     */
    async renewLease(jobId: string, execution: Execution, leaseMs: number): Promise<Control> {
      const reply = await commands.run('renew_lease', {
        job_id: jobId,
        execution,
        lease_ms: leaseMs,
        at: nowText(),
      });
      return controlOf(controlFields(reply as string[]));
    },

    /**
     * Ends the epoch. `queued` makes the next attempt; `paused` waits for `resumeJob`. A pending pause turns
     * `queued` into `paused`; with a pending cancel the job is cancelled.
     */
    async releaseAttempt(
      jobId: string,
      execution: Execution,
      { to, reason, delay_ms, preempted, avoid }: ReleaseOptions,
    ): Promise<Job> {
      const reply = await commands.run('release_attempt', {
        job_id: jobId,
        execution,
        to,
        reason: reason ?? undefined,
        delay_ms,
        preempted,
        avoid,
        at: nowText(),
      });
      return jobOf(reply as RecordReply);
    },

    /**
     * Calls back with the current control state and after each change, also after a reconnect. Calls may
     * repeat a value; none comes after `Unsubscribe` has resolved.
     */
    watchControl: (jobId: string, onControl: (control: Control) => void): Promise<Unsubscribe> =>
      watchControl(context, jobId, onControl),

    /**
     * Ends the epochs of jobs whose lease expired more than `graceMs` ago, as `releaseAttempt` does. Any
     * process may call it at any time.
     */
    async requeueAbandoned(graceMs: number): Promise<string[]> {
      const ids = await commands.run('requeue_abandoned', {
        grace_ms: graceMs,
        limit: REQUEUE_BATCH,
        at: nowText(),
      });
      return ids as string[];
    },
  };
}

function refusal(error: unknown): ClaimResult {
  const { code, message } = error as ZerofleetError;
  if (!CLAIM_REFUSALS.includes(code)) throw error;
  const retryAfterMs = code === 'lease_held' ? Number(message) : 0;
  return { granted: false, code: code as ClaimRefusal, retry_after_ms: retryAfterMs };
}

async function watchControl(
  context: StoreContext,
  jobId: string,
  onControl: (control: Control) => void,
): Promise<Unsubscribe> {
  const key = jobKey(context, jobId);
  let ended = false;

  async function look(): Promise<void> {
    const values = await redisCall(context.redis.hmget(key, ...CONTROL_FIELDS));
    const fields = controlFields(values);
    if (!ended && fields.state) onControl(controlOf(fields));
  }

  // A read that fails while Redis is unavailable is repeated after resubscription; the heartbeat reads the value as
  // well.
  const unsubscribe = await context.subscriptions.add(
    `${key}:control`,
    () => void look().catch(() => undefined),
  );
  await look();
  return async () => {
    ended = true;
    await unsubscribe();
  };
}
