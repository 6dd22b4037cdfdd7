import { join } from 'node:path';
import type { Config } from '../../platform/config/config.js';
import { objectStoreUrl } from '../../platform/config/stores.js';
import type { Logger } from '../../platform/logging/logging.js';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/index.js';
import { startEmbeddedRedis } from '../../platform/redis/embedded.js';
import { type JobStore, openJobStore } from '../../state/index.js';

interface Stores {
  store: JobStore;
  objects: ObjectStore;
}

/**
 * Runs a function on the configured stores; without a configured Redis, on the stack's own, which must not be running.
 */
export async function withStores<T>(
  config: Config,
  log: Logger,
  work: (stores: Stores) => Promise<T>,
): Promise<T> {
  const closers: (() => Promise<void>)[] = [];
  try {
    let redisUrl = config.redis_url;
    if (redisUrl === null) {
      const redis = await startEmbeddedRedis({ dir: join(config.data_dir, 'redis'), log });
      closers.push(() => redis.stop());
      redisUrl = redis.url;
    }
    const url = objectStoreUrl(config);
    const create = config.object_store === null;
    const objects = await openObjectStore(url, { s3Endpoint: config.s3_endpoint, create });
    closers.push(() => objects.close());
    const store = await openJobStore({ url: redisUrl, log });
    closers.push(() => store.close());
    return await work({ store, objects });
  } finally {
    for (const close of closers.toReversed()) await close();
  }
}
