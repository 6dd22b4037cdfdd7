import type { FastifyRequest } from 'fastify';
import { requireMatch } from '../http/etag.js';

/**
 * What a merge patch makes of a record whose `fields` can be changed.
 * @throws ZerofleetError `version_mismatch`, from the function
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
 * Keeps a record in the object store as it was changed. Of two changes at once the later one may be written first, so whoever
 * writes looks whether it is still the last; and what was deleted meanwhile stays deleted.
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
