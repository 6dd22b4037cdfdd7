import type { FastifyRequest } from 'fastify';
import { type CallType, type Job, type StoredCall, ZerofleetError } from '../../contracts/index.js';
import { callText, putOnce, typeIn } from '../../formats/calls/call-log.js';
import { callKey } from '../../formats/checkpoint/layout.js';
import { callBounds } from '../../job-document/index.js';
import type { CallCounters } from '../../state/index.js';
import { checkpointNotFound } from '../access/found.js';
import { type ComponentSchemas, callSchemas } from './call-schemas.js';

type LoadCall = Extract<StoredCall, { type: 'load_state' }>;

interface GivenCall {
  job: Job;
  number: number;
  counters: CallCounters;
  body: Buffer;
}

export interface StoredText {
  number: number;
  type: CallType;
  /** False if the call was stored before. */
  is_new: boolean;
}

let schemas: ComponentSchemas | undefined;

/**
 * Checks a call in a thread and stores it under its number, which is at most the next one. The object is written before
 * the counter: a call that is counted can be read, and a repeated request counts one that was stored only.
 * @throws ZerofleetError `malformed_json`, `validation_failed`, `checkpoint_not_found`, `call_conflict`
 */
export async function appendCall(
  request: Pick<FastifyRequest, 'records' | 'server'>,
  { job, number, counters, body }: GivenCall,
): Promise<StoredText> {
  const { records, server } = request;
  const { inspector, objects, contract } = server.services;
  schemas ??= callSchemas(contract.document.components.schemas);
  const input = { body, schemas, bounds: callBounds(job.spec) };
  const { type, content: text } = await inspector.run('readCall', input, { owner: records.project });
  const content = type === 'load_state' ? await located(request, job.id, text) : Buffer.from(text);
  const before = await putOnce(objects, callKey(job.id, number), content);
  const stored = before ?? content;
  // Also another call than this one: its request may have ended before the call was counted.
  if (number > counters.appended)
    await records.countCalls(job.id, {
      ...counters,
      appended: number,
      is_finished: typeIn(stored) === 'finish',
      bytes: stored.length,
    });
  if (!stored.equals(content))
    throw new ZerofleetError('call_conflict', `call ${number} of ${job.id} is stored with another content`);
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
