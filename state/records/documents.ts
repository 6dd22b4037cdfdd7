import { DEFAULT_PROJECT, type Page } from '../../contracts/index.js';
import { indexKey, namedIndex, redisCall, type StoreContext, untilUnchanged } from '../core/context.js';
import { readPage } from '../core/listing.js';
import type { NamedPageRequest } from '../core/paging.js';

/** Origin of a record, as `put_document` stores it. */
export interface Origin {
  copy_of?: string | undefined;
  upload_id?: string | undefined;
}

/** Lifetime of an upload; afterwards its id is not used again. */
const UPLOAD_KEPT_MS = 7 * 86_400_000;

/** JSON records that are listed by id. */
export interface Documents<T> {
  /**
   * Stores a record. Returns false when it comes from an upload that was already made a dataset.
   * @throws `storage_quota_exceeded`
   */
  put(document: T, more?: Origin): Promise<boolean>;
  /** Returns a record; null when it does not exist. */
  get(id: string): Promise<T | null>;
  /** Replaces a record with the result of `change`, which may be called more than once. Returns null when it does not exist. */
  update(id: string, change: (before: T) => T): Promise<T | null>;
  /** Lists the records of one project, newest first. */
  list(page?: NamedPageRequest): Promise<Page<T>>;
}

/**
 * Returns the access to the records of one kind.
 * @param kind prefix of their keys; see core/commands/job.lua
 */
export function documents<T extends { id: string; project: string; name: string; bytes: number }>(
  context: StoreContext,
  kind: 'dataset' | 'model',
): Documents<T> {
  const { redis, prefix, commands } = context;
  const key = (id: string) => `${prefix}:${kind}:${id}`;
  const parse = (text: string | null) => (text === null ? null : (JSON.parse(text) as T));

  return {
    async put(document, more = {}) {
      const { id, project, name, bytes } = document;
      const origin = { ...more, ttl_ms: UPLOAD_KEPT_MS };
      const call = { kind, id, project, name, bytes, document: JSON.stringify(document), ...origin };
      const [recorded] = await commands.run('put_document', call);
      return recorded === '1';
    },

    async get(id) {
      return parse(await redisCall(redis.get(key(id))));
    },

    update(id, change) {
      return untilUnchanged(id, async () => {
        const from = await redisCall(redis.get(key(id)));
        const before = parse(from);
        if (before === null) return null;
        const after = change(before);
        const { project, name } = after;
        const call = { kind, id, project, from, to: JSON.stringify(after), name_before: before.name, name };
        const [changed] = await commands.run('change_document', call);
        return changed === '1' ? after : undefined;
      });
    },

    list({ project = DEFAULT_PROJECT, name, ...page } = {}) {
      const index = indexKey(context, project, namedIndex(`${kind}s`, name));
      const load = async (ids: string[]) => (await redisCall(redis.mget(...ids.map(key)))).map(parse);
      return readPage(context, { indexes: [index], page, load });
    },
  };
}
