import { ZerofleetError } from '../../contracts/index.js';
import { ObjectStoreError } from '../../platform/object-store/index.js';

/**
 * True if a record may exist although the attempt ended in this error: the job store's answer may have been lost. The
 * content must stay then; if no record exists, garbage collection of the object store removes it.
 */
export function mayBeRecorded(error: unknown): boolean {
  return (
    error instanceof ZerofleetError &&
    !(error instanceof ObjectStoreError) &&
    error.code === 'job_store_unavailable'
  );
}
