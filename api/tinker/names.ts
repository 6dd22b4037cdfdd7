/** Names of this API, which say all that the server needs to know of them. */

import { Refusal } from '../openai/errors.js';
import { isId } from '../openai/ids.js';

/** What a request waits for: `<job>.<call>.<kind>`, `<call of the prompt>` behind it where there is one. */
export interface Pending {
  job_id: string;
  number: number;
  kind: PendingKind;
  /** Number of the forward pass over the prompt of a sample; 0 without one. */
  prompt: number;
}

const KINDS = [
  'model',
  'fork',
  'pass',
  'step',
  'weights',
  'sampler',
  'session',
  'load',
  'sample',
  'unload',
] as const;
export type PendingKind = (typeof KINDS)[number];

/** Weights of a session after its call `number`; 0 for those that it began with. */
export interface Weights {
  job_id: string;
  number: number;
}

const PATH = /^tinker:\/\/([^/]+)\/(?:sampler_)?weights\/(\d{1,12})$/;

export function requestId({
  job_id,
  number,
  kind,
  prompt,
}: Omit<Pending, 'prompt'> & { prompt?: number }): string {
  return `${job_id}.${number}.${kind}.${prompt ?? 0}`;
}

/** @throws Refusal */
export function parseRequestId(id: string): Pending {
  const [jobId = '', number, kind, prompt] = id.split('.');
  const known = KINDS.find((each) => each === kind);
  const numbers = [Number(number), Number(prompt)];
  if (!isId('job', jobId) || known === undefined || !numbers.every(Number.isSafeInteger))
    throw new Refusal(400, 'invalid_parameter', 'request_id', `there is no request ${id}`);
  return { job_id: jobId, number: Number(number), kind: known, prompt: Number(prompt) };
}

export function pathOf({ job_id, number }: Weights, kind: 'weights' | 'sampler_weights'): string {
  return `tinker://${job_id}/${kind}/${number}`;
}

/** @throws Refusal */
export function parsePath(path: string): Weights {
  const [, jobId = '', number] = PATH.exec(path) ?? [];
  if (isId('job', jobId)) return { job_id: jobId, number: Number(number) };
  const message = `${path} is no path of saved weights; use one that save_state or save_weights_for_sampler has returned`;
  throw new Refusal(400, 'invalid_parameter', 'path', message);
}

/** A sampler has a name of its own, so that its samples differ from those of another one. */
export function samplerId({ job_id, number }: Weights, sampler: string): string {
  return `${job_id}.${number}.${sampler}`;
}

const SAMPLER = /^([^.]+)\.(\d{1,12})\.([0-9A-Z]{26})$/;

/** @throws Refusal */
export function parseSamplerId(id: string): Weights & { sampler: string } {
  const [, jobId = '', number, sampler = ''] = SAMPLER.exec(id) ?? [];
  if (isId('job', jobId)) return { job_id: jobId, number: Number(number), sampler };
  throw new Refusal(404, 'sampling_session_not_found', 'sampling_session_id', `there is no sampler ${id}`);
}
