import { redisCall, type StoreContext } from './context.js';
import type { SweepGuard } from './sweep-port.js';

export function sweepGuard({ redis, prefix }: StoreContext): SweepGuard {
  return {
    async readyForSweep() {
      const [restoring, ...counts] = await Promise.all([
        redisCall(redis.exists(`${prefix}:restore`)),
        ...['jobs', 'datasets', 'models'].map((index) => redisCall(redis.zcard(`${prefix}:${index}`))),
      ]);
      if (restoring === 1) return 'restoring';
      return counts.some((count) => count > 0) ? 'ready' : 'empty';
    },

    async takeSweepTurn(interval_ms) {
      const at = new Date().toISOString();
      return (await redisCall(redis.set(`${prefix}:sweep-turn`, at, 'PX', interval_ms, 'NX'))) === 'OK';
    },
  };
}
