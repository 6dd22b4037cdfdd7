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
export async function callCounters(stores: CallStores, jobId: string): Promise<CallCounters> {
  return (await stores.store.getCalls(jobId)) ?? countCallsAnew(stores, jobId);
}

/** Raises the counters of a session to what is stored, and sets its bytes. @throws `job_not_found` */
export async function countCallsAnew({ store, objects }: CallStores, jobId: string): Promise<CallCounters> {
  const { appended, answered, bytes } = await countStored(objects, jobId);
  if (appended === 0) return { appended, answered, is_finished: false };
  const isFinished = (await typeOfCall(objects, jobId, appended)) === 'finish';
  return store.countCalls(jobId, { appended, answered, is_finished: isFinished, bytes, is_total: true });
}
