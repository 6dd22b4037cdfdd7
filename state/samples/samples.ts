import type { SampleMessage, SamplePayload } from '../../contracts/index.js';
import { redisCall, type StoreContext } from '../core/context.js';
import type { SampleRequests } from './samples-port.js';

/** Requests of a pool that no worker has taken. One project has at most half of them, one model a third. */
const MAX_WAITING = 1_000;
/** A request begins anew when it loses its worker; one that ends workers must not go on for ever. */
const MAX_LOST_WORKERS = 3;
/** Unread messages of a caller. */
const MAX_UNREAD_BYTES = 8 * 1024 ** 2;
/** Messages that are read at once, and their bytes: a caller must not be busy with them for long. */
const READ_BATCH = 64;
const READ_BYTES = 64 * 1024;

export function sampleRequests({ redis, prefix, commands, subscriptions }: StoreContext): SampleRequests {
  const samplesKey = (pool: string) => `${prefix}:pool:${pool}:samples`;
  return {
    async requestSample({ payload, ...request }) {
      const { project, model } = payload;
      const more = { project, model, payload: JSON.stringify(payload), max_waiting: MAX_WAITING };
      await commands.run('request_sample', { ...request, ...more });
    },

    async takeSamples({ answered, ...taking }) {
      const more = { max_lost: MAX_LOST_WORKERS, lost_reply: JSON.stringify(WORKERS_LOST) };
      const taken = await commands.run('take_samples', { ...taking, using: placesOf(answered), ...more });
      return (taken as [string, string, string][]).map(([id, payload, late]) => ({
        id,
        payload: JSON.parse(payload) as SamplePayload,
        is_late: late === '1',
      }));
    },

    async renewSamples(pool, worker, ids, holdMs) {
      if (ids.length === 0) return [];
      return (await commands.run('renew_samples', { pool, worker, ids, hold_ms: holdMs })) as string[];
    },

    async releaseSample(id, worker) {
      await commands.run('release_sample', { id, worker });
    },

    async tellSample(id, worker, message) {
      const last = 'end' in message;
      const call = { id, worker, message: JSON.stringify(message), last, max_bytes: MAX_UNREAD_BYTES };
      const [outcome] = await commands.run('tell_sample', call);
      return outcome as 'told' | 'full' | 'gone';
    },

    async abandonSample(id) {
      await commands.run('abandon_sample', { id });
    },

    async readMessages(caller, after) {
      const limits = { limit: READ_BATCH, max_bytes: READ_BYTES };
      const read = await commands.run('read_messages', { caller, after: after ?? '', ...limits });
      return (read as [string, string, string][]).map(([position, id, message]) => ({
        position,
        id,
        message: JSON.parse(message) as SampleMessage,
      }));
    },

    async findSamples(ids) {
      if (ids.length === 0) return [];
      return (await commands.run('find_samples', { ids })) as ('waiting' | 'taken' | 'gone')[];
    },

    async countSamples(pool) {
      const key = samplesKey(pool);
      const [waiting, taken] = await redisCall(Promise.all([redis.zcard(key), redis.zcard(`${key}-taken`)]));
      return { waiting, taken };
    },

    watchSamples: (pool, onChange) => subscriptions.add(samplesKey(pool), () => onChange()),
    watchMessages: (caller, onChange) =>
      subscriptions.add(`${prefix}:sample-caller:${caller}`, () => onChange()),
  };
}

const WORKERS_LOST: SampleMessage = {
  end: {
    ok: false,
    error: { code: 'workers_lost', message: 'the workers that answered were lost, one after the other' },
  },
};

/** Counts places by turn (core/commands/sample.lua). */
function placesOf(answered: readonly SamplePayload[]): Record<string, number> {
  const places: Record<string, number> = {};
  for (const { project, model } of answered) {
    const turn = `${project} ${model}`;
    places[turn] = (places[turn] ?? 0) + 1;
  }
  return places;
}
