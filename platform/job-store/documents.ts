import type { Page } from '../../contracts/index.js';
import { readPage, redisCall, type StoreContext } from './context.js';
import type { PageRequest } from './port.js';

/** Records that are written once as JSON and listed by their id. */
export interface Documents<T> {
  put(document: T): Promise<void>;
  /** Null when there is none. */
  get(id: string): Promise<T | null>;
  /** Newest first. */
  list(page?: PageRequest): Promise<Page<T>>;
}

/**
 * @param kind begins their keys; see commands/include/job.lua
 * @param later values of the fields that records of earlier versions do not have
 */
export function documents<T extends { id: string }>(
  context: StoreContext,
  kind: 'dataset' | 'model',
  later: Partial<T>,
): Documents<T> {
  const { redis, prefix } = context;
  const index = `${prefix}:${kind}s`;
  const key = (id: string) => `${prefix}:${kind}:${id}`;
  const parse = (text: string | null) => (text === null ? null : ({ ...later, ...JSON.parse(text) } as T));

  return {
    async put(document) {
      const { id } = document;
      await redisCall(redis.multi().set(key(id), JSON.stringify(document)).zadd(index, 0, id).exec());
    },

    async get(id) {
      return parse(await redisCall(redis.get(key(id))));
    },

    list(page = {}) {
      const load = async (ids: string[]) => (await redisCall(redis.mget(...ids.map(key)))).map(parse);
      return readPage(context, index, page, load);
    },
  };
}
