/** Names of this API, which say all that the server needs to know of them. */
import { Refusal } from '../openai/errors.js';
import { isId } from '../openai/ids.js';

/** What a request waits for: `<job>.<call>.<kind>.<call of the prompt>`. */
export interface Pending {
  job_id: string;
  number: number;
  kind: PendingKind;
  /** Number of the forward pass over the prompt of a sample; 0 without one. */
  prompt: number;
}

/** Kinds of requests that are complete at once. */
const COMPLETE = ['model', 'fork', 'session'] as const;
/** Kinds of requests that are calls. */
const CALLS = ['pass', 'step', 'weights', 'sampler', 'load', 'sample', 'unload'] as const;
export type PendingKind = (typeof COMPLETE | typeof CALLS)[number];

const REQUEST = /^([^.]+)\.(\d{1,12})\.([a-z]+)\.(\d{1,12})$/;

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
  const [, jobId = '', number, name, prompt] = REQUEST.exec(id) ?? [];
  const call = CALLS.find((each) => each === name);
  const kind = call ?? COMPLETE.find((each) => each === name);
  const numbers = { number: Number(number), prompt: Number(prompt) };
  const isCall = call !== undefined && numbers.prompt < numbers.number;
  if (isId('job', jobId) && kind !== undefined && (isCall || call === undefined))
    return { job_id: jobId, kind, ...numbers };
  throw new Refusal(400, 'invalid_parameter', 'request_id', `there is no request ${id}`);
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

/** Longest id and path of this API. */
export const MAX_NAME = 255;

const SAMPLER = /^([^.]+)\.(\d{1,12})\.([0-9A-Z]{26})$/;

/** @throws Refusal */
export function parseSamplerId(id: string): Weights & { sampler: string } {
  const [, jobId = '', number, sampler = ''] = SAMPLER.exec(id) ?? [];
  if (isId('job', jobId)) return { job_id: jobId, number: Number(number), sampler };
  throw new Refusal(404, 'sampling_session_not_found', 'sampling_session_id', `there is no sampler ${id}`);
}
