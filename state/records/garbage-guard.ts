import { DEFAULT_PROJECT } from '../../contracts/index.js';
import { indexKey, projectsKey, redisCall, type StoreContext } from '../core/context.js';

/** Queries of garbage collection to the records. */
export type GarbageGuard = ReturnType<typeof garbageGuard>;

export function garbageGuard(context: StoreContext) {
  const { redis, prefix } = context;
  return {
    /**
     * Returns 'ready' when the records determine which objects are unused, otherwise the reason why they do
     * not.
     */
    async readyForCollection(): Promise<'ready' | 'empty' | 'restoring'> {
      const projects = [DEFAULT_PROJECT, ...(await redisCall(redis.smembers(projectsKey(context))))];
      const indexes = projects.flatMap((project) =>
        ['jobs', 'datasets', 'models'].map((name) => indexKey(context, project, name)),
      );
      const [restoring, ...counts] = await Promise.all([
        redisCall(redis.exists(`${prefix}:restore`)),
        ...indexes.map((index) => redisCall(redis.zcard(index))),
      ]);
      if (restoring === 1) return 'restoring';
      return counts.some((count) => count > 0) ? 'ready' : 'empty';
    },

    /** Returns true to one of all servers that call it within `interval_ms`. */
    async takeCollectionTurn(intervalMs: number): Promise<boolean> {
      const at = new Date().toISOString();
      return (await redisCall(redis.set(`${prefix}:collection-lock`, at, 'PX', intervalMs, 'NX'))) === 'OK';
    },
  };
}
