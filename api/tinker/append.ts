import type { FastifyRequest } from 'fastify';
import { type Job, ZerofleetError } from '../../contracts/index.js';
import { putOnce, typeOfCall } from '../../formats/calls/call-log.js';
import { callNumberKey } from '../../formats/checkpoint/layout.js';
import { getIfExists } from '../../platform/object-store/common/get-if-exists.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { checkCall } from '../calls/append-call.js';
import { countersOf, storeCall } from '../jobs/session-calls.js';
import type { Weights } from './names.js';

interface KeyedCall {
  job: Job;
  /** Names the request among those of the session: a repeated request has the same key. */
  key: string;
  /** JSON of the call. */
  body: Buffer;
}

/**
 * Appends a call under the next number and returns the number. The client numbers its training calls alone, but samples
 * are calls of the same log, so the numbers differ. Each attempt claims a number for the key before the call is stored.
 * A repeated request finds its call under the last number that the key has claimed, and recognizes it by its content,
 * since another call may have taken the number.
 * @throws errors of `checkCall` and `storeCall`
 */
export async function appendKeyed(request: FastifyRequest, { job, key, body }: KeyedCall): Promise<number> {
  const { objects } = request.server.services;
  const call = await checkCall(request, job, body);
  for (let taken: number | undefined; ; ) {
    const claims = await claimsOf(objects, job.id, key);
    const given = claims.at(-1) === taken ? undefined : claims.at(-1);
    const counters = await countersOf(request, job.id);
    const number = given ?? counters.appended + 1;
    let isOurs = given !== undefined;
    const prepare = async () => {
      if (!isOurs) await claim(objects, callNumberKey(job.id, key, claims.length + 1), number);
      isOurs = true;
    };
    try {
      const { is_new } = await storeCall(request, { job, number, counters, call, prepare });
      // An equal call under a number that was not read is that of another request.
      if (is_new || given !== undefined) return number;
      taken = number;
    } catch (error) {
      if (!(error instanceof ZerofleetError) || error.code !== 'call_conflict') throw error;
      if (isOurs) taken = number;
    }
  }
}

/** Returns the numbers that a key has claimed, in their order. */
async function claimsOf(objects: ObjectStore, jobId: string, key: string): Promise<number[]> {
  const numbers: number[] = [];
  for (;;) {
    const stored = await getIfExists(objects, callNumberKey(jobId, key, numbers.length + 1));
    if (stored === null) return numbers;
    numbers.push(Number(stored.toString('utf8')));
  }
}

/** @throws ZerofleetError `call_conflict` if the same request, sent twice at once, has claimed a number */
async function claim(objects: ObjectStore, name: string, number: number): Promise<void> {
  if ((await putOnce(objects, name, Buffer.from(String(number)))) !== null)
    throw new ZerofleetError('call_conflict', `${name} has a number`);
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

  /** True if a call behind that of the weights, up to `until`, may have changed them. Reads the type of each call once. */
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
