import type { TraceHeaders } from './trace-context.js';
import type { Checkpoint, ExportRequest, Sample, SampleChoice, SampleRequest, TensorState } from './types.js';

/** Prefix of every Redis key; the braces map all keys to one hash slot, so that scripts may access several. */
export const REDIS_PREFIX = '{zf}';

/** A BullMQ entry: the attempt that its worker has to start. It carries no state: the job store has it. */
export interface QueuePayload {
  job_id: string;
  attempt: number;
  /** Trace of the request that created the job. */
  trace?: TraceHeaders;
}

/** Name of a worker's BullMQ queue: attempts that it leads. */
export function queueName(workerId: string): string {
  return `worker-${workerId}`;
}

/** Fields of a request that its prompt is made of. */
export type PromptRequest = Pick<
  SampleRequest,
  | 'prompt'
  | 'messages'
  | 'chat_template'
  | 'tools'
  | 'tool_choice'
  | 'parallel_tool_calls'
  | 'response_format'
>;

/** A sample request with every option filled in. */
export type SampleTask = Omit<PromptRequest, 'tools' | 'tool_choice' | 'response_format'> &
  Required<Omit<SampleRequest, 'stream' | 'prompt' | 'messages' | 'chat_template' | 'parallel_tool_calls'>>;

/** Source of the weights that answer: a checkpoint, or an uploaded model. */
export type SampleSource =
  | { job_id: string; checkpoint: Pick<Checkpoint, 'id' | 'prefix'> }
  | { model_id: string };

/** A sample request, as a worker gets it. */
export interface SamplePayload {
  /** Project of the caller's key. */
  project: string;
  /** Id of the checkpoint or the uploaded model. */
  model: string;
  source: SampleSource;
  request: SampleTask;
}

/** A token that was or could have been drawn. `bytes` if they are not the UTF-8 of `token`: a part of a character. */
interface LikelyToken {
  token: string;
  logprob: number;
  bytes?: number[];
}

/** A token of an answer. */
export interface AnswerToken extends LikelyToken {
  top: LikelyToken[];
}

/** How a model writes calls of tools, as its chat template does. Texts are without special tokens and trimmed. */
export interface CallFormat {
  /** Before the calls; empty: an answer may begin with calls. */
  open: string;
  /** Between two calls inside of `open` and `close`; null: each call has its own. */
  separator: string | null;
  /** Behind the calls. */
  close: string;
  /** Fields of a JSON object that lead to the name; null: the name stands before the arguments. */
  name: string[] | null;
  /** Fields that lead to the arguments. */
  arguments: string[];
}

/** Next part of an answer, as the model writes it. */
export interface AnswerDelta {
  index: number;
  text: string;
  /** Absent if the text has no calls. */
  call_format?: CallFormat;
  logprobs: AnswerToken[];
}

export type AnswerChoice = AnswerDelta & Pick<SampleChoice, 'finish_reason'>;

/** An answer with its prompt. */
export type GeneratedText = Pick<Sample, 'prompt' | 'usage'> & { choices: AnswerChoice[] };

/**
 * A delta with its position in the answer. A worker that takes over a request repeats the same text from the start; the
 * position shows what is known.
 */
export interface PositionedDelta extends AnswerDelta {
  /** Characters (UTF-16) of the answer before `text`. */
  text_at: number;
  /** Tokens of the answer before `logprobs`. */
  logprobs_at: number;
}

/** Reply to a sample request. */
type ReplyWith<Text> = { ok: true; sample: Text } | { ok: false; error: { code: string; message: string } };
export type SampleReply = ReplyWith<GeneratedText>;

/** End of an answer whose text and tokens were sent in deltas. */
export type AnswerEnd = Omit<GeneratedText, 'choices'> & {
  choices: Pick<AnswerChoice, 'index' | 'finish_reason'>[];
};

/** Messages of a worker to the caller of a sample request: its state, the answer as it grows, and the end. */
export type SampleMessage =
  | { state: 'loading' | 'answering' }
  | { deltas: PositionedDelta[] }
  | { end: ReplyWith<AnswerEnd> };

/** An export among those of one checkpoint. */
export type ExportKind = Required<ExportRequest>;

/**
 * A BullMQ entry that requests an export of a checkpoint in another format. Its id is `exportName`: repeated requests
 * for one export share one entry. The finished export is recorded beside the files, so that it outlives the entry.
 */
export interface ExportPayload extends ExportKind {
  job_id: string;
  checkpoint: Pick<Checkpoint, 'id' | 'prefix' | 'step'>;
  /** Key of the target folder, without a trailing slash. */
  prefix: string;
}

/** Permanent error of an export; null for a written export. */
export type ExportReply = { error: { code: string; message: string } | null };

/** A BullMQ entry of the same queue that requests a checkpoint with another value of a tensor. Its id is `editName`. */
export interface EditPayload {
  edit_id: string;
  job_id: string;
  /** The checkpoint to change. */
  checkpoint: Pick<Checkpoint, 'id' | 'prefix'>;
  tensor: string;
  tensor_state: TensorState;
  values: TensorValues;
}

/** An object with all elements of a tensor: fp32, little-endian. */
export interface TensorValues {
  key: string;
  /** 64 hexadecimal digits. */
  sha256: string;
}

export type EditReply = { error: { code: string; message: string } } | { error: null; checkpoint_id: string };

/** Name of a pool's BullMQ queue of `ExportPayload`s and `EditPayload`s. */
export function exportQueueName(pool: string): string {
  return `exports-${pool}`;
}

/** Names of the BullMQ queues of webhook messages: the first pending ones of each project, and the others. */
export const webhookQueueNames = { first: 'webhooks', others: 'webhooks-others' } as const;

/** BullMQ job id of an attempt: adding the same attempt twice leaves one entry. */
export function queueJobId(payload: QueuePayload): string {
  return `${payload.job_id}-${payload.attempt}`;
}
