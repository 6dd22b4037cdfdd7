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
import { whileSilent } from '../../http/long-request.js';
import { sendEvents, withHeartbeats } from '../../http/sse.js';
import { invalidDocument } from '../../jobs/check-spec.js';
import { findCheckpoint } from '../../jobs/init-source.js';
import { requireWeights } from '../../jobs/resolve-export.js';
import type { OperationHandler } from '../types.js';
import { SampleStream } from './sample-stream.js';

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
    pool: request.query.pool ?? 'default',
    chat_template: tokenizer?.chat_template ?? null,
    named: { model: id, step: null },
  });
};

interface Answering {
  source: SampleSource;
  pool: string;
  chat_template: string | null;
  named: Pick<Sample, 'model' | 'step'>;
}

async function answer(
  request: FastifyRequest<{ Body: SampleRequest }>,
  reply: FastifyReply,
  { source, pool, chat_template, named }: Answering,
): Promise<Sample | FastifyReply> {
  const { store, limits } = request.server.services;
  const { stream = false, ...body } = request.body;
  if (body.messages !== undefined && chat_template === null) throw noTemplate();
  const payload: SamplePayload = {
    source,
    request: { ...DEFAULTS, ...body },
    stream,
    expires_at: (await store.now()) + limits.sample_timeout_ms,
  };
  const wholeOf = (reply: SampleReply): Sample => ({ ...named, ...sampleOf(reply) });
  const growing = new SampleStream(request.id);
  const answered = ask(request, reply, pool, payload, growing);
  if (!stream) return wholeOf(await answered);
  // An error before the first text is an answer of its own.
  if (!(await growing.begins(answered))) sampleOf(await answered);
  return sendEvents(reply, withHeartbeats(growing.messages(answered, wholeOf), limits.heartbeat_ms));
}

function ask(
  request: FastifyRequest<{ Body: SampleRequest }>,
  reply: FastifyReply,
  pool: string,
  payload: SamplePayload,
  growing: SampleStream,
): Promise<SampleReply> {
  const { samples, limits, keyWatch } = request.server.services;
  return whileSilent(request, reply, (signal) =>
    samples.sample(pool, payload, {
      timeout_ms: limits.sample_timeout_ms,
      loading_ms: limits.model_loading_ms,
      signal: AbortSignal.any([signal, growing.left, keyWatch.watch(request, signal)]),
      onStart: () => growing.start(),
      onDeltas: (deltas) => growing.add(deltas),
    }),
  );
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
