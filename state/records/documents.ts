import { DEFAULT_PROJECT, type Page } from '../../contracts/index.js';
import { indexKey, namedIndex, redisCall, type StoreContext, untilUnchanged } from '../core/context.js';
import { readPage } from '../core/listing.js';
import type { NamedPageRequest } from '../core/paging.js';

/** Lifetime of an upload; afterwards its id is not used again. */
const UPLOAD_KEPT_MS = 7 * 86_400_000;

interface StoredDocument {
  id: string;
  project: string;
  name: string;
  bytes: number;
  /** Model that is needed as long as this record exists. */
  base?: string;
}

/**
 * JSON records of one kind, which are listed by id.
 * @param kind prefix of their keys; see core/commands/job.lua
 * @param copyOf names the source that a record is a copy of
 */
export function documents<T extends StoredDocument>(
  context: StoreContext,
  kind: 'dataset' | 'model' | 'sweep',
  copyOf: (document: T) => string | undefined,
) {
  const { redis, prefix, commands } = context;
  const key = (id: string) => `${prefix}:${kind}:${id}`;
  const parse = (text: string | null) => (text === null ? null : (JSON.parse(text) as T));

  const get = async (id: string) => parse(await redisCall(redis.get(key(id))));

  return {
    /**
     * Stores a record. Returns false when it comes from an upload that was already made a dataset.
     * @throws `storage_quota_exceeded`; `model_not_found` if its base was deleted
     */
    async put(document: T, { upload_id }: { upload_id?: string | undefined } = {}): Promise<boolean> {
      const { id, project, name, bytes, base } = document;
      const origin = { copy_of: copyOf(document), upload_id, ttl_ms: UPLOAD_KEPT_MS };
      const call = { kind, id, project, name, bytes, base, document: JSON.stringify(document), ...origin };
      const [recorded] = await commands.run('put_document', call);
      return recorded === '1';
    },

    /** Returns a record; null when it does not exist. */
    get,

    /** Deletes a record, if it exists. @throws `dataset_in_use`, `model_in_use` */
    async remove(id: string): Promise<boolean> {
      const document = await get(id);
      const source = document === null ? undefined : copyOf(document);
      const [deleted] = await commands.run('delete_document', { kind, id, copy_of: source });
      return deleted === '1';
    },

    /** Returns the copy of a source; null when there is none. @param source as `copyOf` names it */
    async copied(project: string, source: string | undefined): Promise<T | null> {
      if (source === undefined) return null;
      const id = await redisCall(redis.hget(indexKey(context, project, 'copies'), source));
      return id === null ? null : get(id);
    },

    /**
     * Replaces a record with the result of `change`, which may be called more than once. Returns null when it
     * does not exist.
     */
    update(id: string, change: (before: T) => T): Promise<T | null> {
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

    /** Lists the records of one project, newest first. */
    list({ project = DEFAULT_PROJECT, name, ...page }: NamedPageRequest = {}): Promise<Page<T>> {
      const index = indexKey(context, project, namedIndex(`${kind}s`, name));
      const load = async (ids: string[]) => (await redisCall(redis.mget(...ids.map(key)))).map(parse);
      return readPage(context, { indexes: [index], page, load });
    },
  };
}
