/**
 * The log of a session: each call and each result is one object, which is written once. Results are functions of the
 * calls, so a result that is computed again has the same bytes, except for ids of checkpoints.
 */
import type { CallResult, CallType, StoredCall } from '../../contracts/index.js';
import { canonicalJson } from '../../platform/canonical-json.js';
import { ObjectStoreError } from '../../platform/object-store/common/errors.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import {
  callKey,
  callResultKey,
  callResultsPrefix,
  callsPrefix,
  rewardsPrefix,
} from '../checkpoint/layout.js';

/** Bytes in which a call's text names its type. */
const TYPE_BYTES = 64;

/** Returns the text of a call: equal calls have equal texts, which begin with the type. */
export function callText({ type, ...fields }: StoredCall): string {
  const rest = canonicalJson(fields);
  return `{"type":"${type}"${rest === '{}' ? '' : `,${rest.slice(1, -1)}`}}`;
}

/** @throws ObjectStoreError `object_not_found` */
export async function readCall(objects: ObjectStore, jobId: string, number: number): Promise<StoredCall> {
  return JSON.parse((await objects.get(callKey(jobId, number))).toString('utf8'));
}

/** Returns the type of a call from the beginning of its object, which may have megabytes. */
export async function typeOfCall(objects: ObjectStore, jobId: string, number: number): Promise<CallType> {
  let start = Buffer.alloc(0);
  for await (const piece of await objects.stream(callKey(jobId, number))) {
    start = Buffer.concat([start, piece.subarray(0, TYPE_BYTES)]);
    if (start.length >= TYPE_BYTES) break;
  }
  return typeIn(start);
}

/** Returns the type of a call whose text begins with these bytes. */
export function typeIn(text: Buffer): CallType {
  return /^\{"type":"([a-z_]+)"/.exec(text.toString('latin1', 0, TYPE_BYTES))?.[1] as CallType;
}

/** @throws ObjectStoreError `object_not_found` */
export async function readCallResult(
  objects: ObjectStore,
  jobId: string,
  number: number,
): Promise<CallResult> {
  return JSON.parse((await objects.get(callResultKey(jobId, number))).toString('utf8'));
}

/** Returns the stored result in place of another one, or null if `result` is stored now. */
export async function putCallResult(
  objects: ObjectStore,
  { job_id, number }: { job_id: string; number: number },
  result: CallResult,
): Promise<{ bytes: number; before: CallResult | null }> {
  const content = Buffer.from(canonicalJson(result));
  const before = await putOnce(objects, callResultKey(job_id, number), content);
  return { bytes: content.length, before: before && JSON.parse(before.toString('utf8')) };
}

/** Stores a new object. Returns null, or the content of the object that exists already, which stays. */
export async function putOnce(objects: ObjectStore, key: string, content: Buffer): Promise<Buffer | null> {
  try {
    await objects.put(key, content, { createOnly: true, contentType: 'application/json' });
    return null;
  } catch (error) {
    if (!(error instanceof ObjectStoreError) || error.code !== 'precondition_failed') throw error;
    return objects.get(key);
  }
}

/** Counts the calls and results of a session without a gap, and the bytes of these and of rewards. */
export async function countStored(
  objects: ObjectStore,
  jobId: string,
): Promise<{ appended: number; answered: number; bytes: number }> {
  const calls = await countUnder(objects, callsPrefix(jobId));
  const results = await countUnder(objects, callResultsPrefix(jobId));
  let bytes = calls.bytes + results.bytes;
  for await (const object of objects.list(rewardsPrefix(jobId))) bytes += object.bytes;
  return { appended: calls.count, answered: results.count, bytes };
}

async function countUnder(objects: ObjectStore, prefix: string): Promise<{ count: number; bytes: number }> {
  let [count, bytes] = [0, 0];
  for await (const object of objects.list(prefix)) {
    // A result may be stored out of its order for a moment.
    if (Number(object.key.slice(prefix.length, -'.json'.length)) !== count + 1) break;
    count += 1;
    bytes += object.bytes;
  }
  return { count, bytes };
}
