import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { type JobStore, keepDesired } from '../../state/index.js';

/**
 * Stores in the object store that jobs were stopped by a limit, so that a rebuilt job store does not run them
 * again.
 */
export async function keepLimits(
  stores: { store: Pick<JobStore, 'getJob'>; objects: ObjectStore },
  jobIds: readonly string[],
): Promise<void> {
  for (const id of jobIds) {
    const job = await stores.store.getJob(id);
    if (job?.reason === 'budget_reached') await keepDesired(stores, job);
  }
}
