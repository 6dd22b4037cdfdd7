import type { TraceHeaders } from './trace-context.js';
import type { Checkpoint, ExportRequest, Sample, SampleRequest } from './types.js';

/** Every Redis key begins with this; the braces put all of them into one hash slot, so scripts may touch several. */
export const REDIS_PREFIX = '{zf}';

/** A BullMQ entry says which attempt of which job its worker has to begin. It carries no state: the job store has that. */
export interface QueuePayload {
  job_id: string;
  attempt: number;
  /** Of the request that created the job. */
  trace?: TraceHeaders;
}

/** Name of the BullMQ queue of a worker: attempts whose ranks it leads. */
export function queueName(workerId: string): string {
  return `worker-${workerId}`;
}

type Prompt = 'prompt' | 'messages';

/** What is drawn after a prompt, or as the answer to messages, with every option. */
export type SampleTask = Pick<SampleRequest, Prompt> & Required<Omit<SampleRequest, Prompt>>;

/** A BullMQ entry that asks a pool for text from a checkpoint; the one who asks waits for its reply. */
export interface SamplePayload {
  job_id: string;
  checkpoint: Pick<Checkpoint, 'id' | 'prefix'>;
  request: SampleTask;
  /** Unix time in milliseconds, by Redis' clock, after which nobody waits any longer. */
  expires_at: number;
}

/** The text, behind which prompt. */
export type Drawn = Pick<Sample, 'prompt' | 'completion' | 'num_tokens'>;

/** What became of it. Failures are replies, too: an entry that fails would be kept and tried again. */
export type SampleReply =
  | { ok: true; sample: Drawn }
  | { ok: false; error: { code: string; message: string } };

/** Name of the BullMQ queue of a pool that takes `SamplePayload`s. */
export function sampleQueueName(pool: string): string {
  return `samples-${pool}`;
}

/**
 * A BullMQ entry that has a pool write a checkpoint in another program's format. Its id is `exportName`: asking twice for one export
 * leaves one entry. What was written is recorded beside the files, so that it outlives the entry.
 */
export interface ExportPayload {
  job_id: string;
  checkpoint: Pick<Checkpoint, 'id' | 'prefix'>;
  format: NonNullable<ExportRequest['format']>;
  dtype: NonNullable<ExportRequest['dtype']>;
  /** Key of the folder to write, without a slash at its end. */
  prefix: string;
}

/** Why an export will not succeed however often it is tried; null when it was written. */
export type ExportReply = { error: { code: string; message: string } | null };

/** Name of the BullMQ queue of a pool that takes `ExportPayload`s. */
export function exportQueueName(pool: string): string {
  return `exports-${pool}`;
}

/** Names of the BullMQ queues of messages to webhooks: of the first ones of each project that are under way, and of its others. */
export const webhookQueueNames = { first: 'webhooks', others: 'webhooks-others' } as const;

/** BullMQ job id of an attempt: adding the same attempt twice leaves one entry. */
export function queueJobId(payload: QueuePayload): string {
  return `${payload.job_id}-${payload.attempt}`;
}
