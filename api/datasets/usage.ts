import { isFinal, JOB_STATES } from '../../contracts/index.js';
import type { JobStorePort } from '../../platform/job-store/port.js';

const PAGE_SIZE = 100;

/**
 * The id of a job that trains on a dataset and has not ended; null when there is none. Jobs that are created while this
 * looks may be missed: such a job fails with `dataset_not_found` when it starts.
 */
export async function findJobUsing(
  store: Pick<JobStorePort, 'listJobs'>,
  datasetId: string,
): Promise<string | null> {
  for (const state of JOB_STATES.filter((name) => !isFinal(name))) {
    let after: string | null = null;
    do {
      const page = await store.listJobs({ state, limit: PAGE_SIZE, ...(after === null ? {} : { after }) });
      const user = page.data.find((job) => job.spec.data.dataset === datasetId);
      if (user !== undefined) return user.id;
      after = page.next_cursor;
    } while (after !== null);
  }
  return null;
}
