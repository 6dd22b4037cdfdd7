import { ObjectStoreError } from './errors.js';
import type { ObjectStore } from './port.js';

/**
 * Returns the content of an object, or null if there is none, in one request: between a `head` and a `get`
 * the object may be deleted.
 * @throws ObjectStoreError as `get`, except `object_not_found`
 */
export async function getIfExists(objects: Pick<ObjectStore, 'get'>, key: string): Promise<Buffer | null> {
  try {
    return await objects.get(key);
  } catch (error) {
    if (error instanceof ObjectStoreError && error.code === 'object_not_found') return null;
    throw error;
  }
}
