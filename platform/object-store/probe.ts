import { newUlid } from '../random.js';
import { ObjectStoreError } from './common/errors.js';
import type { ObjectStore } from './common/port.js';

/** Below a root of the sweep, for the case that the process dies before it removes the object. */
const FOLDER = 'uploads/_probe';

/**
 * Checks that a store refuses a create-only write to an existing key. Servers without `If-None-Match` support
 * overwrite it silently, and two workers might commit the same checkpoint.
 * @throws errors of the object store
 */
export async function keepsCreateOnly(objects: ObjectStore): Promise<boolean> {
  const key = `${FOLDER}/${newUlid()}/object`;
  await objects.put(key, Buffer.from('first'));
  try {
    await objects.put(key, Buffer.from('second'), { createOnly: true });
    return false;
  } catch (error) {
    if (error instanceof ObjectStoreError && error.code === 'precondition_failed') return true;
    throw error;
  } finally {
    await objects.delete([key]);
  }
}
