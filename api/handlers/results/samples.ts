import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  isErrorCode,
  type Sample,
  type SamplePayload,
  type SampleReply,
  type SampleRequest,
  type SampleSource,
  type SampleTask,
  ZerofleetError,
} from '../../../contracts/index.js';
import { checkpointNotFound, found } from '../../access/found.js';
import { sendJson } from '../../answers/json-pieces.js';
import { numReported } from '../../answers/reported-tokens.js';
import { whileSilent } from '../../http/long-request.js';
import { sendEvents, withHeartbeats } from '../../http/sse.js';
import { invalidDocument } from '../../jobs/check-spec.js';
import { findCheckpoint } from '../../jobs/init-source.js';
import { requireWeights } from '../../jobs/resolve-export.js';
import type { OperationHandler } from '../types.js';
import { SampleStream } from './sample-stream.js';

/** Log-probabilities of an answer, of its tokens and of the most likely ones: some 60 MB of JSON. */
const MAX_LOGPROBS = 2 ** 20;
/** Tokens of an answer: those of the longest context. */
const MAX_TOKENS = 32_768;
/** The pool of requests that name none, which need not have a worker yet. */
const DEFAULT_POOL = 'default';

const DEFAULTS: Omit<SampleTask, 'prompt' | 'messages'> = {
  max_tokens: 128,
  temperature: 1,
  top_k: 0,
  top_p: 1,
  seed: 1,
  stop: [],
  n: 1,
  logprobs: null,
  weights: 'trained',
};

export const sampleCheckpoint: OperationHandler<'sampleCheckpoint'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { source, errors } = await findCheckpoint(
    { store: request.records, objects },
    request.params.checkpoint_id,
  );
  if (source === null) throw checkpointNotFound(errors[0]?.message);
  const { checkpoint, spec } = source;
  requireWeights(spec, request.body.weights);
  const { id, prefix, job_id, step } = checkpoint;
  const { chat_template } = spec.data;
  return answer(request, reply, {
    source: { job_id, checkpoint: { id, prefix } },
    pool: spec.resources.pool,
    is_named: false,
    chat_template,
    named: { model: id, step },
  });
};

export const sampleModel: OperationHandler<'sampleModel'> = async (request, reply) => {
  const { id, model_type, tokenizer } = found(
    await request.records.getModel(request.params.model_id),
    'model',
    request.params.model_id,
  );
  if (model_type === null)
    throw new ZerofleetError('model_not_found', `${id} is a tokenizer without weights; use a model`);
  if (request.body.weights === 'ema') throw noAverage();
  return answer(request, reply, {
    source: { model_id: id },
    pool: request.query.pool ?? DEFAULT_POOL,
    is_named: request.query.pool !== DEFAULT_POOL,
    chat_template: tokenizer?.chat_template ?? null,
    named: { model: id, step: null },
  });
};

interface Answering {
  source: SampleSource;
  pool: string;
  /** True if the request named the pool. */
  is_named: boolean;
  chat_template: string | null;
  named: Pick<Sample, 'model' | 'step'>;
}

async function answer(
  request: FastifyRequest<{ Body: SampleRequest }>,
  reply: FastifyReply,
  { source, pool, is_named, chat_template, named }: Answering,
): Promise<FastifyReply> {
  const { heartbeat_ms } = request.server.services.limits;
  const { stream = false, ...body } = request.body;
  if (body.messages !== undefined && chat_template === null) throw noTemplate();
  const payload: SamplePayload = {
    project: request.records.project,
    model: named.model,
    source,
    request: { ...DEFAULTS, ...body },
  };
  requireBound(payload.request);
  const wholeOf = (reply: SampleReply): Sample => ({ ...named, ...sampleOf(reply) });
  if (!stream) {
    const sample = wholeOf(await ask(request, reply, { pool, is_named, payload }));
    return sendJson(reply, sample, numReported(sample));
  }
  const growing = new SampleStream(request.id);
  const answered = ask(request, reply, { pool, is_named, payload }, growing);
  // An error before the first text is an answer of its own.
  if (!(await growing.begins(answered))) sampleOf(await answered);
  return sendEvents(reply, withHeartbeats(growing.messages(answered, wholeOf), heartbeat_ms));
}

/** @param growing gets the texts as they grow */
function ask(
  request: FastifyRequest<{ Body: SampleRequest }>,
  reply: FastifyReply,
  { pool, is_named, payload }: Pick<Answering, 'pool' | 'is_named'> & { payload: SamplePayload },
  growing?: SampleStream,
): Promise<SampleReply> {
  const { samples, limits, keyWatch } = request.server.services;
  return whileSilent(request, reply, (signal) => {
    const signals = [signal, keyWatch.watch(request, signal)];
    const call = {
      is_named,
      timeout_ms: limits.sample_timeout_ms,
      loading_ms: limits.model_loading_ms,
    };
    if (growing === undefined)
      return samples.sample(pool, payload, { ...call, signal: AbortSignal.any(signals) });
    return samples.sample(pool, payload, {
      ...call,
      signal: AbortSignal.any([...signals, growing.left]),
      onStart: () => growing.start(),
      onDeltas: (deltas) => growing.add(deltas),
    });
  });
}

/** @throws ZerofleetError for an answer that could be too large */
function requireBound({ n, max_tokens, logprobs }: SampleTask): void {
  const count = logprobs === null ? 0 : n * Math.min(max_tokens, MAX_TOKENS) * (1 + logprobs);
  if (count <= MAX_LOGPROBS) return;
  const message =
    `n × max_tokens × (1 + logprobs) is ${count}, and an answer reports at most ${MAX_LOGPROBS} log-probabilities: ` +
    'lower one of them';
  throw invalidDocument([{ pointer: '/logprobs', code: 'out_of_range', message }]);
}

/** @throws ZerofleetError the worker's error */
function sampleOf(reply: SampleReply) {
  if (reply.ok) return reply.sample;
  const { code, message } = reply.error;
  throw new ZerofleetError(isErrorCode(code) ? code : 'native_error', message);
}

function noTemplate(): ZerofleetError {
  const message = 'there is no chat template for messages; send a prompt';
  return invalidDocument([{ pointer: '/messages', code: 'chat_template_missing', message }]);
}

function noAverage(): ZerofleetError {
  const message = 'an uploaded model has one set of weights; leave weights out';
  return invalidDocument([{ pointer: '/weights', code: 'ema_missing', message }]);
}
