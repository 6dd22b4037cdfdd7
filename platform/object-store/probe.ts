import { newUlid } from '../random.js';
import { ObjectStoreError } from './common/errors.js';
import type { ObjectStore } from './common/port.js';

/** Below a root that the sweep looks at, should the process end before the object is removed. */
const FOLDER = 'uploads/_probe';

/**
 * Whether a store refuses a create-only write to a key that is there. Servers that don't know `If-None-Match` overwrite it without a
 * word, and then two workers may commit the same checkpoint.
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
