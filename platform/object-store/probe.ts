import { newUlid } from '../random.js';
import { ObjectStoreError } from './common/errors.js';
import type { ObjectStore } from './common/port.js';

/** Below a root of garbage collection, which removes an object that the probe has left. */
export const PROBES = 'uploads/_probe';

/**
 * Checks that a store refuses a create-only write to an existing key. Servers without `If-None-Match` support
 * overwrite it silently, and two workers might commit the same checkpoint.
 * @throws errors of the object store
 */
export async function keepsCreateOnly(objects: ObjectStore): Promise<boolean> {
  const key = `${PROBES}/${newUlid()}/object`;
  await objects.put(key, Buffer.from('first'));
  try {
    await objects.put(key, Buffer.from('second'), { createOnly: true });
    return false;
  } catch (error) {
    if (error instanceof ObjectStoreError && error.code === 'precondition_failed') return true;
    throw error;
  } finally {
    // What the probe has found counts, also if the store fails now.
    await objects.delete([key]).catch(() => undefined);
  }
}
