/** Requests that are calls of a session. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Call, Checkpoint } from '../../contracts/index.js';
import { type Static, type TSchema, Type } from '../../platform/schema.js';
import { holdRawBody } from '../http/long-request.js';
import { PROTOBUF_TYPE } from '../http/upload-body.js';
import { countersOf } from '../jobs/session-calls.js';
import { notSupported, Refusal } from '../openai/errors.js';
import { nullable, parserOf } from '../openai/pages.js';
import { continueAs, routeAs } from '../openai/route-as.js';
import { appendNamed, checkNamed } from './append.js';
import { checkpointOf, findModel, forkSession, Metadata, requireNoBase } from './models.js';
import { MAX_NAME, type PendingKind, parsePath, requestId } from './names.js';

const Name = Type.String({ maxLength: MAX_NAME });
const addressed = { model_id: Name, seq_id: Type.Integer({ minimum: 0 }) };

const parseStep = parserOf(
  Type.Object({
    ...addressed,
    adam_params: Type.Object({
      learning_rate: Type.Optional(Type.Number()),
      beta1: Type.Optional(Type.Number()),
      beta2: Type.Optional(Type.Number()),
      eps: Type.Optional(Type.Number()),
      weight_decay: Type.Optional(Type.Number()),
      grad_clip_norm: Type.Optional(Type.Number()),
    }),
  }),
);
const parseSave = parserOf(
  Type.Object({
    ...addressed,
    path: nullable(Type.String()),
    sampling_session_seq_id: nullable(Type.Integer()),
  }),
);
const parseLoad = parserOf(
  Type.Object({
    model_id: nullable(Name),
    seq_id: nullable(Type.Integer({ minimum: 0 })),
    session_id: nullable(Type.String({ maxLength: 64 })),
    model_seq_id: nullable(Type.Integer({ minimum: 0 })),
    base_model: nullable(Type.String()),
    user_metadata: Metadata,
    path: Name,
    optimizer: Type.Boolean(),
    weights_access_token: nullable(Type.String()),
  }),
);

type LoadBody = ReturnType<typeof parseLoad>;
type Addressed = Static<TSchema> & { model_id: string; seq_id: number };

export async function trainingRoutes(app: FastifyInstance): Promise<void> {
  const { inspector, limits } = app.services;
  const options = routeAs(app, 'putCall');
  const ofPass = {
    config: { ...options.config, mediaType: PROTOBUF_TYPE },
    bodyLimit: limits.call_bytes,
    onRequest: async (request: FastifyRequest, reply: FastifyReply) => holdRawBody(request, reply),
  };
  const json = (request: FastifyRequest) =>
    inspector.run('readTinkerJson', { body: request.body as Buffer }, { owner: request.records.project });

  app.post('/forward_backward', ofPass, async (request) => {
    const input = { body: request.body as Buffer };
    const { call, ...address } = await inspector.run('readTinkerPass', input, {
      owner: request.records.project,
    });
    return append(request, { address, body: Buffer.from(call), kind: 'pass' });
  });

  app.post('/optim_step', options, async (request) => {
    const { adam_params: given, ...address } = parseStep(await json(request));
    const call: Call = {
      type: 'optim_step',
      lr: given.learning_rate ?? 1e-4,
      betas: [given.beta1 ?? 0.9, given.beta2 ?? 0.95],
      eps: given.eps ?? 1e-12,
      weight_decay: given.weight_decay ?? 0,
      gradient_clipping: given.grad_clip_norm ?? 0,
    };
    return append(request, { address, call, kind: 'step' });
  });

  app.post('/save_weights', options, async (request) => {
    const address = parseSave(await json(request));
    return append(request, { address, call: { type: 'save_state' }, kind: 'weights' });
  });

  app.post('/save_weights_for_sampler', options, async (request) => {
    const { path, ...address } = parseSave(await json(request));
    if (typeof path === 'string')
      return append(request, { address, call: { type: 'save_state' }, kind: 'sampler' });
    // Without a name nothing is saved: the sampler reads the weights of the session until they change.
    const { id } = await findModel(request, address.model_id);
    const { appended } = await countersOf(request, id);
    return {
      request_id: requestId({ job_id: id, number: appended, kind: 'session' }),
      model_id: address.model_id,
    };
  });

  app.post('/load_weights', options, async (request, reply) => {
    const { weights_access_token, base_model, ...body } = parseLoad(await json(request));
    requireNoBase(base_model);
    if (typeof weights_access_token === 'string')
      throw notSupported(
        'weights_access_token',
        'weights_access_token is not supported; use a key of their project',
      );
    const { model_id, seq_id, path, optimizer } = body;
    const checkpoint = await checkpointOf(request, reply, parsePath(path));
    if (typeof model_id !== 'string' || typeof seq_id !== 'number')
      return createFrom(request, reply, { ...body, checkpoint });
    const call: Call = { type: 'load_state', checkpoint: checkpoint.id, optimizer };
    return append(request, { address: { model_id, seq_id }, call, kind: 'load' });
  });
}

/** Creates a model from saved weights. The client derives the name of the model itself. */
async function createFrom(
  request: FastifyRequest,
  reply: FastifyReply,
  { session_id, model_seq_id, user_metadata, checkpoint, optimizer }: LoadBody & { checkpoint: Checkpoint },
) {
  if (typeof session_id !== 'string' || typeof model_seq_id !== 'number')
    throw new Refusal(
      400,
      'invalid_parameter',
      'model_id',
      'send model_id and seq_id to load the weights into a model, or session_id and model_seq_id to create one',
    );
  const modelId = `${session_id}:train:${model_seq_id}`;
  const restore = optimizer ? 'continue' : 'weights';
  const { job } = await forkSession(request, reply, {
    checkpoint,
    key: modelId,
    model_id: modelId,
    user_metadata,
    restore,
  });
  return { request_id: requestId({ job_id: job.id, number: 0, kind: 'fork' }), model_id: modelId };
}

interface Appended {
  address: Addressed;
  call?: Call;
  body?: Buffer;
  kind: PendingKind;
}

async function append(request: FastifyRequest, { address, call, body, kind }: Appended) {
  const { model_id, seq_id } = address;
  const job = await findModel(request, model_id);
  continueAs(request, 'putCall', { job_id: job.id });
  const named = await checkNamed(request, {
    job,
    name: `training-${seq_id}`,
    body: body ?? Buffer.from(JSON.stringify(call)),
  });
  const number = await appendNamed(request, job, named);
  return { request_id: requestId({ job_id: job.id, number, kind }), model_id };
}
