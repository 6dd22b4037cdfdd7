import { redisCall, type StoreContext } from '../core/context.js';
import type { AbandonedSamples } from './abandoned-port.js';

/** Longer than a worker needs to see it. */
const KEPT_SECONDS = 600;

export function abandonedSamples({ redis, prefix }: StoreContext): AbandonedSamples {
  const key = (entry: string) => `${prefix}:sample-abandoned:${entry}`;
  return {
    async abandonSample(entry) {
      await redisCall(redis.set(key(entry), '1', 'EX', KEPT_SECONDS));
    },

    async abandonedSamples(entries) {
      const found = entries.length === 0 ? [] : await redisCall(redis.mget(...entries.map(key)));
      return new Set(entries.filter((_, index) => found[index] !== null));
    },
  };
}
