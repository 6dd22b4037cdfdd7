import type { FastifyRequest } from 'fastify';
import { requireMatch } from '../http/etag.js';

/**
 * Applies a merge patch to the changeable `fields` of a record. @throws ZerofleetError `version_mismatch`, from the
 * function
 */
export function patched<T extends object>(
  { headers, body }: Pick<FastifyRequest, 'headers'> & { body: Partial<T> },
  fields: readonly (keyof T)[],
): (before: T) => T {
  return (before) => {
    requireMatch(headers['if-match'], before, fields);
    return { ...before, ...body };
  };
}

/**
 * Stores the document of a changed record in the object store. Concurrent changes may write in any order, so each
 * writer repeats its write until it has stored the latest version. The document of a deleted record is removed.
 */
export async function keepRecord<T extends object>(
  changed: T,
  {
    put,
    read,
    remove,
  }: { put(record: T): Promise<void>; read(): Promise<T | null>; remove(): Promise<void> },
): Promise<void> {
  for (let record = changed; ; ) {
    await put(record);
    const now = await read();
    if (now === null) return remove();
    if (JSON.stringify(now) === JSON.stringify(record)) return;
    record = now;
  }
}
