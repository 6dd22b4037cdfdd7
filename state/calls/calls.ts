/**
 * Counters of the calls of sessions. The calls themselves are objects; after a loss of Redis the counters are made
 * from the objects again (call-counters.ts).
 */
import { jobKey, redisCall, type StoreContext } from '../core/context.js';
import { type WaitOptions, waitFields } from '../core/wait.js';

export interface CallCounters {
  /** Number of the last call that is stored; 0 without one. */
  appended: number;
  /** Number of the last call with a result; every call before it has one, too. */
  answered: number;
  /** True if the last call is a `finish`, so that none may follow. */
  is_finished: boolean;
}

/** Counters that have risen; the objects of the calls or results are stored already. */
export interface CallCount extends Partial<CallCounters> {
  /** Bytes of the objects that are counted now. */
  bytes: number;
  /** True if `bytes` are those of all calls and results. */
  is_total?: boolean;
}

const FIELDS = ['appended', 'answered', 'finished'] as const;

export type SessionCalls = ReturnType<typeof sessionCalls>;

export function sessionCalls(context: StoreContext) {
  const { commands, redis } = context;
  const keyOf = (jobId: string) => `${jobKey(context, jobId)}:calls`;
  return {
    /** Null for a job without each of its counters: it has no calls, or Redis has lost some. */
    async getCalls(jobId: string): Promise<CallCounters | null> {
      const values = await redisCall(redis.hmget(keyOf(jobId), ...FIELDS));
      return values.includes(null) ? null : countersOf(values);
    },

    /**
     * Raises counters and wakes those who wait for them. A counter never falls, so a repeated call changes nothing.
     * @returns the counters afterwards
     * @throws `job_not_found`
     */
    async countCalls(jobId: string, { is_finished: finished, ...count }: CallCount): Promise<CallCounters> {
      return countersOf(
        (await commands.run('count_calls', { job_id: jobId, finished, ...count })) as string[],
      );
    },

    /**
     * Waits until the counters meet a condition; counters that are lost are 0.
     * @returns false when `timeoutMs` passed or `signal` was aborted first
     */
    waitCalls(
      jobId: string,
      areReached: (counters: CallCounters) => boolean,
      options: WaitOptions,
    ): Promise<boolean> {
      const key = keyOf(jobId);
      const watched = { key, fields: FIELDS, channel: key };
      return waitFields(context, watched, (values) => areReached(countersOf(values)), options);
    },
  };
}

function countersOf([appended, answered, finished]: readonly (string | null)[]): CallCounters {
  return { appended: Number(appended ?? 0), answered: Number(answered ?? 0), is_finished: finished === '1' };
}
