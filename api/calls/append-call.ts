import type { FastifyRequest } from 'fastify';
import { type CallType, type Job, type StoredCall, ZerofleetError } from '../../contracts/index.js';
import { callText, putOnce, typeIn } from '../../formats/calls/call-log.js';
import { callKey } from '../../formats/checkpoint/layout.js';
import { callBounds } from '../../job-document/index.js';
import type { CallCounters } from '../../state/index.js';
import { checkpointNotFound } from '../access/found.js';
import { type ComponentSchemas, callSchemas } from './call-schemas.js';

type LoadCall = Extract<StoredCall, { type: 'load_state' }>;

export interface CheckedCall {
  type: CallType;
  /** The text to store. */
  content: Buffer;
}

export interface StoredText {
  number: number;
  type: CallType;
  /** False if the call was stored before. */
  is_new: boolean;
}

type Asking = Pick<FastifyRequest, 'records' | 'server'>;

let schemas: ComponentSchemas | undefined;

interface GivenCall {
  /** JSON of the call, which the thread takes over. */
  body: Buffer;
  /** Name of the request; by default that which the call has. */
  request?: string;
}

/**
 * Checks a call in a thread.
 * @throws ZerofleetError `payload_too_large`, `malformed_json`, `validation_failed`, `checkpoint_not_found`
 */
export async function checkCall(
  asking: Asking,
  job: Job,
  { body, request }: GivenCall,
): Promise<CheckedCall> {
  const { inspector, contract, limits } = asking.server.services;
  if (body.length > limits.call_bytes)
    throw new ZerofleetError(
      'payload_too_large',
      `the call has ${body.length} bytes as JSON; the maximum is ${limits.call_bytes}`,
    );
  schemas ??= callSchemas(contract.document.components.schemas);
  const input = { body, schemas, bounds: callBounds(job.spec), ...(request !== undefined && { request }) };
  const { type, content } = await inspector.run('readCall', input, { owner: asking.records.project });
  return {
    type,
    content: type === 'load_state' ? await located(asking, job.id, content) : Buffer.from(content),
  };
}

/**
 * Stores a call under its number, which is at most the next one. The object is written before the counter, so a counted
 * call can be read. A repeated request counts a call that was stored and not counted.
 * @throws ZerofleetError `call_conflict`
 */
export async function appendCall(
  { records, server }: Asking,
  { type, content }: CheckedCall,
  { job_id, number, counters }: { job_id: string; number: number; counters: CallCounters },
): Promise<StoredText> {
  const before = await putOnce(server.services.objects, callKey(job_id, number), content);
  const stored = before ?? content;
  // Also another call than this one: its request may have ended before the call was counted.
  if (number > counters.appended)
    await records.countCalls(job_id, {
      ...counters,
      appended: number,
      is_finished: typeIn(stored) === 'finish',
      bytes: stored.length,
    });
  if (!stored.equals(content))
    throw new ZerofleetError('call_conflict', `call ${number} of ${job_id} is stored with another content`);
  return { number, type, is_new: before === null };
}

/** Adds the folder of the checkpoint that the call loads. */
async function located(
  { records }: Pick<FastifyRequest, 'records'>,
  jobId: string,
  text: Uint8Array,
): Promise<Buffer> {
  const call: LoadCall = JSON.parse(Buffer.from(text).toString('utf8'));
  const found = await records.findCheckpoint(call.checkpoint);
  if (found?.job_id !== jobId || found.checkpoint === null)
    throw checkpointNotFound(
      `session ${jobId} has no checkpoint ${call.checkpoint}; to begin with another job's, fork the session from it`,
    );
  return Buffer.from(callText({ ...call, prefix: found.checkpoint.prefix }));
}
