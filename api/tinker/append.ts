import type { FastifyRequest } from 'fastify';
import { type Job, ZerofleetError } from '../../contracts/index.js';
import { callNumberKey } from '../../formats/checkpoint/layout.js';
import { ObjectStoreError } from '../../platform/object-store/common/errors.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { countersOf, storeCall } from '../jobs/session-calls.js';

/** Key of the number of the last call that changed the weights. */
const CHANGED = 'weights-changed';

interface KeyedCall {
  job: Job;
  /** Names the request among those of the session: a repeated request has the same key. */
  key: string;
  /** JSON of the call. */
  body: Buffer;
  changesWeights?: boolean;
}

/**
 * Appends a call under the next number and returns the number. The client numbers its training calls alone, but samples
 * are calls of the same log, so the numbers differ. The number is stored under the key before the call is: a repeated
 * request finds its call there, and recognizes it by its content, since another call may have taken the number.
 * @throws errors of `storeCall`
 */
export async function appendKeyed(
  request: FastifyRequest,
  { job, key, body, changesWeights = false }: KeyedCall,
): Promise<number> {
  const { objects } = request.server.services;
  const before = await readNumber(objects, job.id, key);
  for (let given = before; ; given = null) {
    const counters = await countersOf(request, job.id);
    const number = given ?? counters.appended + 1;
    if (given === null) {
      if (changesWeights) await writeNumber(objects, job.id, CHANGED, number);
      await writeNumber(objects, job.id, key, number);
    }
    try {
      await storeCall(request, { job, number, counters, body });
      return number;
    } catch (error) {
      // Another request has stored its call under this number.
      if (!(error instanceof ZerofleetError) || error.code !== 'call_conflict') throw error;
    }
  }
}

/** True if a later call than `number` may have changed the weights. */
export async function hasChanged(objects: ObjectStore, jobId: string, number: number): Promise<boolean> {
  return ((await readNumber(objects, jobId, CHANGED)) ?? 0) > number;
}

async function readNumber(objects: ObjectStore, jobId: string, key: string): Promise<number | null> {
  try {
    return Number((await objects.get(callNumberKey(jobId, key))).toString('utf8'));
  } catch (error) {
    if (error instanceof ObjectStoreError && error.code === 'object_not_found') return null;
    throw error;
  }
}

function writeNumber(objects: ObjectStore, jobId: string, key: string, number: number): Promise<unknown> {
  return objects.put(callNumberKey(jobId, key), Buffer.from(String(number)));
}
