import { ZerofleetError } from '../../contracts/index.js';
import { ObjectStoreError } from '../../platform/object-store/index.js';

/**
 * Whether a record may have been made although the attempt ended in this error: the answer of the job store may have been lost on its
 * way. What the record points to has to stay then; if there is none, the sweep of the object store removes it.
 */
export function mayBeRecorded(error: unknown): boolean {
  return (
    error instanceof ZerofleetError &&
    !(error instanceof ObjectStoreError) &&
    error.code === 'job_store_unavailable'
  );
}
