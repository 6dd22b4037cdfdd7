/** `retrieve_future`: waits for the result of a request. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ulid } from 'ulid';
import { type CallResult, ZerofleetError } from '../../contracts/index.js';
import { callResultKey } from '../../formats/checkpoint/layout.js';
import { Type } from '../../platform/schema.js';
import { PROTOBUF_TYPE } from '../http/upload-body.js';
import { waitAnswered } from '../jobs/session-calls.js';
import { parserOf } from '../openai/pages.js';
import { continueAs, routeAs } from '../openai/route-as.js';
import { MAX_NAME, type Pending, parseRequestId, pathOf, samplerId } from './names.js';

/** Less than the 45 seconds after which a client pauses and sends the request again. */
const WAIT_SECONDS = 30;

const parseFuture = parserOf(Type.Object({ request_id: Type.String({ maxLength: MAX_NAME }) }));

export async function futureRoutes(app: FastifyInstance): Promise<void> {
  app.post('/retrieve_future', routeAs(app, 'getCallResult'), async (request, reply) => {
    const { request_id } = parseFuture(request.body);
    const pending = parseRequestId(request_id);
    const { job_id, number, kind } = pending;
    continueAs(request, 'getCallResult', { job_id });
    if (kind === 'model') return { type: 'create_model', model_id: job_id };
    if (kind === 'fork') return { type: 'load_weights', model_id: job_id };
    if (kind === 'session')
      return { type: 'save_weights_for_sampler', sampling_session_id: samplerId({ job_id, number }, ulid()) };
    try {
      if (!(await waitAnswered(request, reply, { job_id, number, seconds: WAIT_SECONDS })))
        return { type: 'try_again', request_id, queue_state: 'active' };
    } catch (error) {
      if (!(error instanceof ZerofleetError) || error.code !== 'job_final') throw error;
      return { error: error.message, category: 'server' };
    }
    return send(request, reply, pending);
  });
}

async function send(request: FastifyRequest, reply: FastifyReply, pending: Pending): Promise<unknown> {
  const { objects, inspector } = request.server.services;
  const { job_id, number, prompt } = pending;
  const stored = await objects.get(callResultKey(job_id, number));
  const input = { stored, prompt: prompt === 0 ? null : await objects.get(callResultKey(job_id, prompt)) };
  const written = await inspector.run('writeTinkerResult', input, { owner: request.records.project });
  if ('result' in written) return resultOf(pending, written.result);
  return reply.type(PROTOBUF_TYPE).send(Buffer.from(written.protobuf));
}

function resultOf(pending: Pending, result: CallResult): object {
  if ('error' in result) return { error: `${result.error.code}: ${result.error.message}`, category: 'user' };
  const { job_id, kind } = pending;
  if ('grad_norm' in result) {
    const { step, grad_norm, lr, finite } = result;
    // A number of JSON is finite. Programs log their own `step` beside these.
    return {
      metrics: { session_step: step, lr, skipped: finite ? 0 : 1, ...(grad_norm !== null && { grad_norm }) },
    };
  }
  if (kind === 'weights') return { type: 'save_weights', path: pathOf(pending, 'weights') };
  if (kind === 'sampler')
    return { type: 'save_weights_for_sampler', path: pathOf(pending, 'sampler_weights') };
  if (kind === 'load') return { type: 'load_weights', model_id: job_id };
  return { type: 'unload_model', model_id: job_id };
}
