import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  isErrorCode,
  type Sample,
  type SamplePayload,
  type SampleReply,
  type SampleTask,
  ZerofleetError,
} from '../../../contracts/index.js';
import { checkpointNotFound } from '../../access/found.js';
import { whileSilent } from '../../http/long-request.js';
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
  const { services } = request.server;
  const { objects } = services;
  const { source, errors } = await findCheckpoint(
    { store: request.records, objects },
    request.params.checkpoint_id,
  );
  if (source === null) throw checkpointNotFound(errors[0]?.message);
  const { checkpoint, spec } = source;
  const { stream = false, ...body } = request.body;
  if (body.messages !== undefined && spec.data.chat_template === null) throw noTemplate();
  requireWeights(spec, body.weights);
  const { id, prefix, job_id, step } = checkpoint;
  const payload: SamplePayload = {
    job_id,
    checkpoint: { id, prefix },
    request: { ...DEFAULTS, ...body },
    stream,
    expires_at: (await services.store.now()) + services.limits.sample_timeout_ms,
  };
  const wholeOf = (answer: SampleReply): Sample => ({ checkpoint_id: id, step, ...sampleOf(answer) });
  const growing = new SampleStream(request.id);
  const answer = ask(request, reply, spec.resources.pool, payload, growing);
  if (!stream) return wholeOf(await answer);
  // An error before the first text is an answer of its own.
  if (!(await growing.begins(answer))) sampleOf(await answer);
  reply.header('cache-control', 'no-store').header('x-accel-buffering', 'no').type('text/event-stream');
  const messages = growing.messages(answer, wholeOf);
  return reply.send(Readable.from(messages, { objectMode: false, highWaterMark: 16 * 1024 }));
};

function ask(
  request: FastifyRequest,
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
  const message = 'the job has no chat template for messages; send a prompt';
  return invalidDocument([{ pointer: '/messages', code: 'chat_template_missing', message }]);
}
