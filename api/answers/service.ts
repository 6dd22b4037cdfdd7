/** Answers of models, in the form of each API: whole, or as server-sent events. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type AnswerDelta,
  type GeneratedText,
  isErrorCode,
  type Sample,
  type SampleDelta,
  type SamplePayload,
  type SampleRequest,
  type SampleTask,
  ZerofleetError,
} from '../../contracts/index.js';
import { BadLine, parseMessages } from '../../contracts/jsonl/fields.js';
import { readSchema, SchemaFault } from '../../formats/json-grammar/read-schema.js';
import { requiredSchemas, requiredTool } from '../../formats/json-grammar/required-schemas.js';
import { whileSilent } from '../http/long-request.js';
import { sendEvents, withHeartbeats, within } from '../http/sse.js';
import { invalidDocument } from '../jobs/check-spec.js';
import { templateFault } from '../jobs/template-fault.js';
import { AnswerReader } from './answer-reader.js';
import { GrowingAnswer } from './growing-answer.js';
import { numLogprobs } from './logprobs.js';
import { paced, sendJson } from './pieces.js';
import type { AnsweringModel } from './sources.js';

/** Log-probabilities of an answer, of its tokens and of the most likely ones: some 60 MB of JSON. */
const MAX_LOGPROBS = 2 ** 20;
/** The most tokens of an answer. */
const MAX_TOKENS = 32_768;

export const SAMPLE_DEFAULTS: Omit<
  SampleTask,
  'prompt' | 'messages' | 'chat_template' | 'parallel_tool_calls'
> = {
  tools: [],
  tool_choice: 'auto',
  response_format: { type: 'text' },
  max_tokens: 128,
  temperature: 1,
  top_k: 0,
  top_p: 1,
  seed: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  logit_bias: {},
  stop: [],
  n: 1,
  logprobs: null,
  weights: 'trained',
};

/** Characters of the schemas of an answer, which are read here: in at most 10 ms. */
const MAX_SCHEMAS = 200_000;

/** Encoding of an answer. */
export interface AnswerForm {
  /** The document of a whole answer. */
  whole(sample: Sample): object;
  /** Messages of a stream: before the deltas, for each delta, and after them. */
  begin(): Iterable<string>;
  delta(delta: SampleDelta): string;
  end(sample: Sample): Iterable<string>;
  /** Message of an error behind the beginning of a stream. */
  error(error: unknown): string;
  /**
   * True if a stream begins with the first delta, or after the interval of heartbeats. Otherwise it begins with the
   * worker.
   */
  beginsWithText: boolean;
}

/** A request that waits for its answer. */
interface PendingRequest {
  request: FastifyRequest;
  reply: FastifyReply;
  model: AnsweringModel;
  task: SampleTask;
}

/**
 * Sends the answer of a model. It ends when the client leaves, or its key is revoked. An error before a stream begins
 * is thrown.
 * @throws ZerofleetError
 */
export async function sendAnswer(
  { request, reply }: Pick<PendingRequest, 'request' | 'reply'>,
  model: AnsweringModel,
  { stream = false, ...body }: SampleRequest,
  form: AnswerForm,
): Promise<FastifyReply> {
  const pending = await pendingRequest({ request, reply }, model, body);
  if (!stream) {
    const answer = await generate(pending);
    return sendJson(
      reply,
      form.whole(sampleOf(model, new AnswerReader(pending.task), answer)),
      numLogprobs(answer.choices),
    );
  }
  const { heartbeat_ms } = request.server.services.limits;
  const growing = new GrowingAnswer();
  const answer = generate(pending, growing);
  await Promise.race([growing.started, answer]);
  if (form.beginsWithText) await within(heartbeat_ms, Promise.race([growing.hasText, answer]));
  return sendEvents(reply, withHeartbeats(paced(messagesOf(growing, answer, pending, form)), heartbeat_ms));
}

/** Returns the whole answer of a model, while the client waits for another one. @throws ZerofleetError */
export async function wholeAnswer(
  exchange: Pick<PendingRequest, 'request' | 'reply'>,
  model: AnsweringModel,
  body: Omit<SampleRequest, 'stream'>,
): Promise<Sample> {
  const pending = await pendingRequest(exchange, model, body);
  return sampleOf(model, new AnswerReader(pending.task), await generate(pending));
}

/** @throws ZerofleetError for a request that cannot be answered */
async function pendingRequest(
  { request, reply }: Pick<PendingRequest, 'request' | 'reply'>,
  model: AnsweringModel,
  body: Omit<SampleRequest, 'stream'>,
): Promise<PendingRequest> {
  await requireTemplate(request, model, body);
  const options = { ...SAMPLE_DEFAULTS, ...body };
  const task = { ...options, max_tokens: Math.min(options.max_tokens, MAX_TOKENS) };
  requireReadable(task);
  requireForm(task);
  requireBound(task);
  return { request, reply, model, task };
}

/** @param growing gets the deltas */
async function generate(
  { request, reply, model, task }: PendingRequest,
  growing?: GrowingAnswer,
): Promise<GeneratedText> {
  const { samples, limits, keyWatch } = request.server.services;
  const { source, pool, is_named, named } = model;
  const payload: SamplePayload = {
    project: request.records.project,
    model: named.model,
    source,
    request: task,
  };
  const generated = await whileSilent(request, reply, (signal) => {
    const signals = [signal, keyWatch.watch(request, signal), ...(growing ? [growing.left] : [])];
    return samples.sample(pool, payload, {
      is_named,
      timeout_ms: limits.sample_timeout_ms,
      loading_ms: limits.model_loading_ms,
      signal: AbortSignal.any(signals),
      ...(growing && {
        onStart: () => growing.start(),
        onDeltas: (deltas: AnswerDelta[]) => growing.add(deltas),
      }),
    });
  });
  if (generated.ok) return generated.sample;
  const { code, message } = generated.error;
  throw new ZerofleetError(isErrorCode(code) ? code : 'native_error', message);
}

async function* messagesOf(
  growing: GrowingAnswer,
  answer: Promise<GeneratedText>,
  { model, task }: PendingRequest,
  form: AnswerForm,
): AsyncGenerator<string> {
  const deltas = growing.deltas(answer);
  const reader = new AnswerReader(task);
  try {
    yield* form.begin();
    let next = await deltas.next();
    for (; !next.done; next = await deltas.next()) yield form.delta(reader.delta(next.value));
    for (const delta of reader.rest()) yield form.delta(delta);
    yield* form.end(sampleOf(model, reader, next.value));
  } catch (error) {
    yield form.error(error);
  } finally {
    growing.leave();
  }
}

function sampleOf(
  { named }: AnsweringModel,
  reader: AnswerReader,
  { choices, ...answer }: GeneratedText,
): Sample {
  return { ...named, ...answer, choices: choices.map((choice) => reader.choice(choice)) };
}

/** @throws ZerofleetError for an answer that could be too large */
function requireBound({ n, max_tokens, logprobs }: SampleTask): void {
  const count = logprobs === null ? 0 : n * max_tokens * (1 + logprobs);
  if (count <= MAX_LOGPROBS) return;
  const message =
    `n × max_tokens × (1 + logprobs) is ${count}, and an answer reports at most ${MAX_LOGPROBS} log-probabilities: ` +
    'lower one of them';
  throw invalidDocument([{ pointer: '/logprobs', code: 'out_of_range', message }]);
}

/** @throws ZerofleetError for messages or tools that cannot be read */
function requireReadable({ messages, tools, prompt }: SampleTask): void {
  if (prompt !== undefined && tools.length > 0) {
    const message = 'tools belong to a chat; send messages, or leave tools out';
    throw invalidDocument([{ pointer: '/tools', code: 'unknown_field', message }]);
  }
  if (messages === undefined) return;
  try {
    parseMessages(messages, '"messages"');
  } catch (error) {
    if (!(error instanceof BadLine)) throw error;
    const { message, messageIndex: index } = error;
    const pointer = index === null ? '/messages' : `/messages/${index}`;
    throw invalidDocument([{ pointer, code: 'bad_format', message }]);
  }
}

/** @throws ZerofleetError for a form of the answer that cannot be guaranteed */
function requireForm(task: SampleTask): void {
  const { response_format, tools, tool_choice } = task;
  const wanted = requiredTool(tool_choice);
  if (response_format.type !== 'text' && tools.length > 0 && tool_choice !== 'none') {
    const message =
      'an answer cannot have this format and call tools; set tool_choice to none, or leave tools out';
    throw invalidDocument([{ pointer: '/response_format', code: 'unknown_value', message }]);
  }
  const schemas = requiredSchemas(task);
  if (wanted !== null && schemas.length === 0) {
    const message = wanted.any
      ? 'no tool can be called: send tools'
      : `there is no tool ${JSON.stringify(wanted.name)}; name one of tools`;
    throw invalidDocument([{ pointer: '/tool_choice', code: 'unknown_value', message }]);
  }
  let length = 0;
  for (const { schema, pointer } of schemas) {
    length += JSON.stringify(schema).length;
    if (length > MAX_SCHEMAS) {
      const message = `the schemas that an answer may follow have more than ${MAX_SCHEMAS} characters; send fewer or shorter ones`;
      throw invalidDocument([{ pointer, code: 'out_of_range', message }]);
    }
    try {
      readSchema(schema);
    } catch (error) {
      if (!(error instanceof SchemaFault)) throw error;
      const { code, message } = error;
      throw invalidDocument([{ pointer: `${pointer}${error.pointer}`, code, message }]);
    }
  }
}

/** @throws ZerofleetError for messages without a template, or with one that cannot be read */
async function requireTemplate(
  request: FastifyRequest,
  model: AnsweringModel,
  { messages, chat_template }: Pick<SampleRequest, 'messages' | 'chat_template'>,
): Promise<void> {
  if (chat_template === undefined) {
    if (messages === undefined || model.chat_template !== null) return;
    const message = 'there is no chat template for messages; send a prompt, or chat_template';
    throw invalidDocument([{ pointer: '/messages', code: 'chat_template_missing', message }]);
  }
  const pointer = '/chat_template';
  if (messages === undefined) {
    const message = 'chat_template renders messages; send messages, or leave chat_template out';
    throw invalidDocument([{ pointer, code: 'unknown_field', message }]);
  }
  const message = await templateFault(request)(chat_template);
  if (message !== null) throw invalidDocument([{ pointer, code: 'chat_template_invalid', message }]);
}
