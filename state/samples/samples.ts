import type { SampleMessage, SamplePayload } from '../../contracts/index.js';
import { redisCall, type StoreContext } from '../core/context.js';
import type { Unsubscribe } from '../core/subscriptions.js';

export interface SampleRequestInput {
  /** Unique. */
  id: string;
  /** The process that reads the messages. */
  caller: string;
  pool: string;
  /** True if the request named the pool, which must have a worker or a job then. */
  named: boolean;
  payload: SamplePayload;
  /** Time in which the first worker has to take it. */
  wait_ms: number;
}

export interface SampleTaking {
  pool: string;
  /** Unique to the process. */
  worker: string;
  /** Requests that the worker answers at once at most. */
  max_running: number;
  /** Requests that the worker is answering. */
  answered: readonly SamplePayload[];
  hold_ms: number;
  limit: number;
}

export interface TakenSample {
  id: string;
  payload: SamplePayload;
  /** True if no worker has taken it in time. */
  is_late: boolean;
}

interface ReadMessage {
  position: string;
  /** Of the request. */
  id: string;
  message: SampleMessage;
}

/** Requests of a pool that no worker has taken. One project has at most half of them, one model a third. */
const MAX_WAITING = 1_000;
/** A request begins anew when it loses its worker; one that ends workers must not go on for ever. */
const MAX_LOST_WORKERS = 3;
/** Unread messages of a caller. */
const MAX_UNREAD_BYTES = 8 * 1024 ** 2;
/** Messages that are read at once, and their bytes: a caller must not be busy with them for long. */
const READ_BATCH = 64;
const READ_BYTES = 64 * 1024;

/**
 * Requests for samples, from the process that asks (the caller) to a worker of a pool, and the messages of
 * the worker to the caller.
 *
 * A request waits until a worker takes it, whose hold it must renew. A worker that drains returns its
 * requests; those of a worker that stops renewing wait again. The messages of all requests of a caller are
 * one stream, of a bounded number of bytes, which the caller reads.
 */
export type SampleRequests = ReturnType<typeof sampleRequests>;

export function sampleRequests({ redis, prefix, commands, subscriptions }: StoreContext) {
  const samplesKey = (pool: string) => `${prefix}:pool:${pool}:samples`;
  return {
    /**
     * @throws ZerofleetError `pool_not_found`; `sample_queue_full` when too many of the pool, the project or
     *   the model wait
     */
    async requestSample({ payload, ...request }: SampleRequestInput): Promise<void> {
      const { project, model } = payload;
      const more = { project, model, payload: JSON.stringify(payload), max_waiting: MAX_WAITING };
      await commands.run('request_sample', { ...request, ...more });
    },

    /**
     * Takes requests for a worker. Projects take turns, and so do the models of a project; none of them gets
     * all of the worker (core/commands/sample.lua).
     */
    async takeSamples({ answered, ...taking }: SampleTaking): Promise<TakenSample[]> {
      const more = { max_lost: MAX_LOST_WORKERS, lost_reply: JSON.stringify(WORKERS_LOST) };
      const taken = await commands.run('take_samples', { ...taking, running: runningOf(answered), ...more });
      return (taken as [string, string, string][]).map(([id, payload, late]) => ({
        id,
        payload: JSON.parse(payload) as SamplePayload,
        is_late: late === '1',
      }));
    },

    /** Renews the hold on requests. @returns those that the worker has no more, and must not answer */
    async renewSamples(
      pool: string,
      worker: string,
      ids: readonly string[],
      holdMs: number,
    ): Promise<string[]> {
      if (ids.length === 0) return [];
      return (await commands.run('renew_samples', { pool, worker, ids, hold_ms: holdMs })) as string[];
    },

    /** Returns a request to the pool. Does nothing when the worker has it no more. */
    async releaseSample(id: string, worker: string): Promise<void> {
      await commands.run('release_sample', { id, worker });
    },

    /**
     * Sends a message to the caller of a request. A message with `end` ends the request.
     * @returns 'full', without a change, when the caller has too many unread messages; 'gone' when nobody
     *   waits for it, or another worker has it
     */
    async sendSampleMessage(
      id: string,
      worker: string,
      message: SampleMessage,
    ): Promise<'sent' | 'full' | 'gone'> {
      const last = 'end' in message;
      const call = { id, worker, message: JSON.stringify(message), last, max_bytes: MAX_UNREAD_BYTES };
      const [outcome] = await commands.run('send_sample_message', call);
      return outcome as 'sent' | 'full' | 'gone';
    },

    /** Forgets a request that nobody waits for any more. Idempotent. */
    async abandonSample(id: string): Promise<void> {
      await commands.run('abandon_sample', { id });
    },

    /**
     * Reads some messages to a caller, at least one if there are any, and removes those up to `after`, which it
     * has read. A caller that does not read for a minute is gone.
     * @param after position of the last message; null before the first one
     */
    async readMessages(caller: string, after: string | null): Promise<ReadMessage[]> {
      const limits = { limit: READ_BATCH, max_bytes: READ_BYTES };
      const read = await commands.run('read_messages', { caller, after: after ?? '', ...limits });
      return (read as [string, string, string][]).map(([position, id, message]) => ({
        position,
        id,
        message: JSON.parse(message) as SampleMessage,
      }));
    },

    /** Returns how far each request is. */
    async findSamples(ids: readonly string[]): Promise<('waiting' | 'taken' | 'gone')[]> {
      if (ids.length === 0) return [];
      return (await commands.run('find_samples', { ids })) as ('waiting' | 'taken' | 'gone')[];
    },

    /** Counts the requests of a pool that wait, and those that workers answer. */
    async countSamples(pool: string): Promise<{ waiting: number; taken: number }> {
      const key = samplesKey(pool);
      const [waiting, taken] = await redisCall(Promise.all([redis.zcard(key), redis.zcard(`${key}-taken`)]));
      return { waiting, taken };
    },

    /** Calls back when a request of the pool begins to wait. */
    watchSamples: (pool: string, onChange: () => void): Promise<Unsubscribe> =>
      subscriptions.add(samplesKey(pool), () => onChange()),
    /** Calls back when a caller has a message to read. */
    watchMessages: (caller: string, onChange: () => void): Promise<Unsubscribe> =>
      subscriptions.add(`${prefix}:sample-caller:${caller}`, () => onChange()),
  };
}

const WORKERS_LOST: SampleMessage = {
  end: {
    ok: false,
    error: { code: 'workers_lost', message: 'the workers that answered were lost, one after the other' },
  },
};

/** Counts requests by queue (core/commands/sample.lua). */
function runningOf(answered: readonly SamplePayload[]): Record<string, number> {
  const running: Record<string, number> = {};
  for (const { project, model } of answered) {
    const queue = `${project} ${model}`;
    running[queue] = (running[queue] ?? 0) + 1;
  }
  return running;
}
