import { redisCall, type StoreContext } from '../core/context.js';
import type { CheckpointHolds } from './holds-port.js';

/** Default duration of a hold, longer than any wait and read should take. Holds expire, so a crash never keeps a checkpoint for ever. */
export const HOLD_MS = 24 * 3_600_000;

export function checkpointHolds({ commands, redis, prefix }: StoreContext): CheckpointHolds {
  return {
    async holdCheckpoint(checkpointId, holder, ttlMs = HOLD_MS) {
      const call = { checkpoint_id: checkpointId, holder, ttl_ms: ttlMs };
      const [held] = await commands.run('hold_checkpoint', call);
      return held === '1';
    },

    async letGoCheckpoint(checkpointId, holder) {
      await redisCall(redis.zrem(`${prefix}:checkpoint:${checkpointId}:holds`, holder));
    },
  };
}
