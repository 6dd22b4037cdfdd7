import type { ZerofleetError } from '../../contracts/index.js';
import { randomPiece } from '../../platform/random.js';
import { jobKey, nowText, redisCall, type StoreContext } from '../core/context.js';
import type { Unsubscribe } from '../core/subscriptions.js';
import type { ClaimRefusal, ClaimResult, Control, JobAttempts } from './attempts-port.js';
import { CONTROL_FIELDS, controlFields, controlOf } from './control.js';
import { claimOf, jobOf, type RecordReply } from './record.js';

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

export function jobAttempts(context: StoreContext): JobAttempts {
  const { commands } = context;
  return {
    async claimAttempt(jobId, attempt, workerId, leaseMs, { allocated, price_per_rank_hour } = {}) {
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

    async renewLease(jobId, execution, leaseMs) {
      const reply = await commands.run('renew_lease', {
        job_id: jobId,
        execution,
        lease_ms: leaseMs,
        at: nowText(),
      });
      return controlOf(controlFields(reply as string[]));
    },

    async releaseAttempt(jobId, execution, { to, reason, delay_ms, preempted, avoid }) {
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

    watchControl: (jobId, onControl) => watchControl(context, jobId, onControl),

    async requeueAbandoned(graceMs) {
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
  const retry_after_ms = code === 'lease_held' ? Number(message) : 0;
  return { granted: false, code: code as ClaimRefusal, retry_after_ms };
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

  // A read that fails while Redis is unavailable is repeated after resubscription; the heartbeat reads the value as well.
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
