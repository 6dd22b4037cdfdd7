import { decodeTime } from 'ulid';
import { type Page, type Sweep, ZerofleetError } from '../../contracts/index.js';
import { indexKey, redisCall, type StoreContext } from '../core/context.js';
import type { NamedPageRequest } from '../core/paging.js';
import { documents } from './documents.js';

/** A change of a job that the server has yet to make. */
export type SweepTask = 'create' | 'pause' | 'resume' | 'cancel';

export interface StoredSweep {
  id: string;
  project: string;
  name: string;
  /** Sweeps count as no storage; their number is bounded instead. */
  bytes: 0;
  sweep: Sweep;
  /** Tasks by job. */
  tasks: Readonly<Record<string, SweepTask>>;
}

const MAX_SWEEPS = 1000;
const MAX_UNFINISHED = 20;
/** An unfinished sweep without a record is being created; after this time its creation has failed. */
const CREATION_MS = 3_600_000;

/** Sweeps: their records, and the list of those that the servers still have to work on. */
export type SweepRecords = ReturnType<typeof sweepRecords>;

export function sweepRecords(context: StoreContext) {
  const { redis, prefix } = context;
  const { put, get, update, list, remove } = documents<StoredSweep>(context, 'sweep', () => undefined);
  const active = `${prefix}:active-sweeps`;

  return {
    /** Records a sweep. @throws `too_many_sweeps` */
    async putSweep(stored: StoredSweep): Promise<void> {
      const projects = Object.values(await redisCall(redis.hgetall(active)));
      const unfinished = projects.filter((project) => project === stored.project).length;
      const all = await redisCall(redis.zcard(indexKey(context, stored.project, 'sweeps')));
      if (all >= MAX_SWEEPS || unfinished >= MAX_UNFINISHED)
        throw new ZerofleetError(
          'too_many_sweeps',
          `a project may have ${MAX_SWEEPS} sweeps, ${MAX_UNFINISHED} of them unfinished; delete or cancel one`,
        );
      // Listed first, so that a crash in between cannot leave a sweep that nobody works on.
      await redisCall(redis.hset(active, stored.id, stored.project));
      await put(stored);
    },

    /** Records a sweep again that was lost. */
    async restoreSweep(stored: StoredSweep): Promise<void> {
      await redisCall(redis.hset(active, stored.id, stored.project));
      await put(stored);
    },

    /** Returns null when the project has no such sweep. */
    async getSweep(project: string, id: string): Promise<StoredSweep | null> {
      const stored = await get(id);
      return stored?.project === project ? stored : null;
    },

    /** Replaces a sweep with the result of `change`, which may be called more than once. Returns null when unknown. */
    updateSweep: update,

    /** Lists the sweeps of one project, newest first. */
    async listSweeps(request: NamedPageRequest): Promise<Page<Sweep>> {
      const page = await list(request);
      return { ...page, data: page.data.map(({ sweep }) => sweep) };
    },

    /** Removes the record of a sweep. Returns false when it was unknown. */
    deleteSweep: remove,

    /** Returns the sweeps on which the servers have to work. */
    async activeSweeps(): Promise<StoredSweep[]> {
      const ids = await redisCall(redis.hkeys(active));
      const found = await Promise.all(ids.map(get));
      const isGone = (id: string, i: number) =>
        found[i] === null && decodeTime(id.slice('swp_'.length)) < Date.now() - CREATION_MS;
      const gone = ids.filter(isGone);
      if (gone.length > 0) await redisCall(redis.hdel(active, ...gone));
      return found.filter((stored) => stored !== null);
    },

    /** Removes a sweep from that list. */
    async endSweep(id: string): Promise<void> {
      await redisCall(redis.hdel(active, id));
    },
  };
}
