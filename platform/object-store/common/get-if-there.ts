import { ObjectStoreError } from './errors.js';
import type { ObjectStore } from './port.js';

/**
 * The content of an object, null when there is none. One request: between a `head` and a `get` the object may be deleted.
 * @throws ObjectStoreError as `get`, but for `object_not_found`
 */
export async function getIfThere(objects: Pick<ObjectStore, 'get'>, key: string): Promise<Buffer | null> {
  try {
    return await objects.get(key);
  } catch (error) {
    if (error instanceof ObjectStoreError && error.code === 'object_not_found') return null;
    throw error;
  }
}
