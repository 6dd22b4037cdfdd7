import { countStored, typeOfCall } from '../../formats/calls/call-log.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import type { CallCounters, SessionCalls } from './calls.js';

interface CallStores {
  store: Pick<SessionCalls, 'getCalls' | 'countCalls'>;
  objects: ObjectStore;
}

/**
 * Returns the counters of a session. Counters that Redis has lost are made from the objects again.
 * @throws `job_not_found`
 */
export async function callCounters({ store, objects }: CallStores, jobId: string): Promise<CallCounters> {
  const known = await store.getCalls(jobId);
  if (known !== null) return known;
  const { appended, answered, bytes } = await countStored(objects, jobId);
  if (appended === 0) return { appended, answered, is_finished: false };
  const isFinished = (await typeOfCall(objects, jobId, appended)) === 'finish';
  return store.countCalls(jobId, { appended, answered, is_finished: isFinished, bytes, is_total: true });
}
