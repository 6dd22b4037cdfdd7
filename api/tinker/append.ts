import type { FastifyRequest } from 'fastify';
import { type Job, ZerofleetError } from '../../contracts/index.js';
import { putOnce, typeOfCall } from '../../formats/calls/call-log.js';
import { callNumberKey } from '../../formats/checkpoint/layout.js';
import { getIfExists } from '../../platform/object-store/common/get-if-exists.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { type CheckedCall, checkCall } from '../calls/append-call.js';
import { countersOf, requireRoom, storeCall } from '../jobs/session-calls.js';
import type { Weights } from './names.js';

/** Call with the name of its request: a repeated request has the same name. */
export interface NamedCall {
  name: string;
  call: CheckedCall;
}

/** Checks a call. @param body its JSON @throws errors of `checkCall` */
export async function checkNamed(
  request: FastifyRequest,
  { job, name, body }: { job: Job; name: string; body: Buffer },
): Promise<NamedCall> {
  return { name, call: await checkCall(request, job, { body, request: name }) };
}

/**
 * Appends a call under the next number and returns the number. The client numbers its training calls alone, but samples
 * are calls of the same log, so the numbers differ. Each attempt claims a number for the request before the call is
 * stored, so that a repeated request finds the number. Another request may have taken the number meanwhile. A stored
 * call has the name of its request, so the call of another request is never equal.
 * @throws errors of `requireRoom` and `storeCall`
 */
export function appendNamed(request: FastifyRequest, job: Job, named: NamedCall): Promise<number> {
  return request.server.services.appends.run(job.id, () => append(request, job, named));
}

async function append(request: FastifyRequest, job: Job, { name, call }: NamedCall): Promise<number> {
  const { objects } = request.server.services;
  for (let taken: number | undefined; ; ) {
    const claims = await claimsOf(objects, job.id, name);
    const claimed = claims.at(-1) === taken ? undefined : claims.at(-1);
    const counters = await countersOf(request, job.id);
    const number = claimed ?? counters.appended + 1;
    await requireRoom(request, { job, number, counters, call });
    if (
      claimed === undefined &&
      !(await claim(objects, callNumberKey(job.id, name, claims.length + 1), number))
    )
      continue;
    try {
      return (await storeCall(request, { job, number, counters, call })).number;
    } catch (error) {
      if (!(error instanceof ZerofleetError) || error.code !== 'call_conflict') throw error;
      taken = number;
    }
  }
}

/** Returns the numbers that a request has claimed, in their order. */
async function claimsOf(objects: ObjectStore, jobId: string, name: string): Promise<number[]> {
  const numbers: number[] = [];
  for (;;) {
    const stored = await getIfExists(objects, callNumberKey(jobId, name, numbers.length + 1));
    if (stored === null) return numbers;
    numbers.push(Number(stored.toString('utf8')));
  }
}

/** Returns false if the same request, sent twice at once, has claimed a number already. */
async function claim(objects: ObjectStore, key: string, number: number): Promise<boolean> {
  return (await putOnce(objects, key, Buffer.from(String(number)))) === null;
}

/** Calls whose types are read at once. */
const AT_ONCE = 16;
/** Weights whose sessions are remembered. */
const REMEMBERED = 1000;

/** Whether weights are still those of their session. */
export class WeightChanges {
  /** Last call behind which the weights of a call are known to be unchanged; the newest questions come last. */
  private readonly unchanged = new Map<string, number>();

  constructor(private readonly objects: ObjectStore) {}

  /** True if a call behind that of the weights, up to `until`, may have changed them. Reads each call's type once. */
  async has({ job_id, number }: Weights, until: number): Promise<boolean> {
    const key = `${job_id}.${number}`;
    for (let last = this.unchanged.get(key) ?? number; last < until; ) {
      const numbers = Array.from({ length: Math.min(AT_ONCE, until - last) }, (_, i) => last + 1 + i);
      const types = await Promise.all(numbers.map((each) => typeOfCall(this.objects, job_id, each)));
      const changed = types.findIndex((type) => type === 'optim_step' || type === 'load_state');
      last += changed < 0 ? types.length : changed;
      this.remember(key, last);
      if (changed >= 0) return true;
    }
    return false;
  }

  private remember(key: string, last: number): void {
    this.unchanged.delete(key);
    this.unchanged.set(key, last);
    const [oldest] = this.unchanged.keys();
    if (this.unchanged.size > REMEMBERED && oldest !== undefined) this.unchanged.delete(oldest);
  }
}
