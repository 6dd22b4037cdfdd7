import { DEFAULT_PROJECT } from '../../contracts/index.js';
import { indexKey, projectsKey, redisCall, type StoreContext } from '../core/context.js';
import type { SweepGuard } from './sweep-port.js';

export function sweepGuard(context: StoreContext): SweepGuard {
  const { redis, prefix } = context;
  return {
    async readyForSweep() {
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

    async takeSweepTurn(interval_ms) {
      const at = new Date().toISOString();
      return (await redisCall(redis.set(`${prefix}:sweep-lock`, at, 'PX', interval_ms, 'NX'))) === 'OK';
    },
  };
}
