import { redisCall, type StoreContext } from '../core/context.js';

/** Holder name of downloads. The end of a download is unknown, so these holds only expire. */
export const DOWNLOAD_HOLDER = 'download';

/**
 * Default duration of a hold, longer than any wait and read should take. Holds expire, so a crash never keeps a
 * checkpoint for ever.
 */
export const HOLD_MS = 24 * 3_600_000;

/**
 * Holds on checkpoints that another job reads, or that are read while their own job still trains. Neither the
 * retention rule nor a user removes a held checkpoint (`checkpoint_held`). A job holds its initial checkpoint
 * from its creation until it has a checkpoint of its own or ends.
 */
export type CheckpointHolds = ReturnType<typeof checkpointHolds>;

export function checkpointHolds({ commands, redis, prefix }: StoreContext) {
  return {
    /**
     * Holds a checkpoint for a day by default; a repeat extends the hold.
     * @param holder `DOWNLOAD_HOLDER` blocks only the retention rule, not a removal by a user
     * @returns false when the checkpoint does not exist
     */
    async holdCheckpoint(checkpointId: string, holder: string, ttlMs = HOLD_MS): Promise<boolean> {
      const call = { checkpoint_id: checkpointId, holder, ttl_ms: ttlMs };
      const [held] = await commands.run('hold_checkpoint', call);
      return held === '1';
    },

    /** Idempotent. */
    async letGoCheckpoint(checkpointId: string, holder: string): Promise<void> {
      await redisCall(redis.zrem(`${prefix}:checkpoint:${checkpointId}:holds`, holder));
    },
  };
}
