/** Models that are trained: each is a session, and `model_id` is the id of its job. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { forkDocument, modelFrom } from '../../clients/typescript/fork-document.js';
import { VALUES } from '../../contracts/generated/job-defaults.js';
import type { Checkpoint, Job, JobSpec, Page } from '../../contracts/index.js';
import { readCallResult } from '../../formats/calls/call-log.js';
import { type Static, Type } from '../../platform/schema.js';
import { type CreateJobResult, readGiven } from '../../state/index.js';
import { checkpointNotFound, findCheckpoint, notFound } from '../access/found.js';
import { requireOperation } from '../http/authenticate.js';
import { createJob } from '../jobs/changes/create-job.js';
import { findSession, waitAnswered } from '../jobs/session-calls.js';
import { notSupported } from '../openai/errors.js';
import { isId } from '../openai/ids.js';
import { findBase } from '../openai/models.js';
import { nullable, parserOf } from '../openai/pages.js';
import { continueAs, routeAs } from '../openai/route-as.js';
import { appendNamed, checkNamed } from './append.js';
import { MAX_NAME, requestId, type Weights } from './names.js';

const OWN_LABEL = 'tinker/';
const LABELS = { base: `${OWN_LABEL}base_model`, model: `${OWN_LABEL}model` } as const;
/** The scale of an adapter is `alpha / rank` with the alpha of the hosted API. */
const ALPHA = 32;
/** Rows of a call; a client sends more rows as several calls of one step. */
export const MAX_ROWS = 64;
const ATTENTION = ['q_proj', 'k_proj', 'v_proj', 'o_proj'];
const MLP = ['gate_proj', 'up_proj', 'down_proj'];
/** Time for which a saved state may still be pending when it is used. */
const SAVE_SECONDS = 30;

export const Metadata = nullable(Type.Record(Type.String(), Type.Unsafe<unknown>()));
const CreateModel = Type.Object({
  session_id: Type.String({ maxLength: 64 }),
  model_seq_id: Type.Integer({ minimum: 0 }),
  base_model: Type.String({ minLength: 1, maxLength: MAX_NAME }),
  user_metadata: Metadata,
  lora_config: nullable(
    Type.Object({
      rank: Type.Integer({ minimum: 1 }),
      seed: nullable(Type.Integer({ minimum: 0 })),
      train_unembed: Type.Optional(Type.Boolean()),
      train_mlp: Type.Optional(Type.Boolean()),
      train_attn: Type.Optional(Type.Boolean()),
    }),
  ),
});
type CreateModel = Static<typeof CreateModel>;
const parseCreate = parserOf(CreateModel);
const parseModel = parserOf(Type.Object({ model_id: Type.String({ maxLength: MAX_NAME }) }));

export async function modelRoutes(app: FastifyInstance): Promise<void> {
  app.post('/create_model', routeAs(app, 'createJob'), async (request, reply) => {
    const body = parseCreate(request.body);
    const { base_model, lora_config, user_metadata } = body;
    const base = await baseOf(request, base_model);
    const document = sessionOf(base, {
      labels: { ...labelsOf(user_metadata), [LABELS.base]: base_model },
      ...(lora_config && { lora: lora_config }),
    });
    const key = `${body.session_id}:train:${body.model_seq_id}`;
    const { job } = await createSession(request, reply, { document, key });
    return { request_id: requestId({ job_id: job.id, number: 0, kind: 'model' }), model_id: job.id };
  });

  app.post('/get_info', routeAs(app, 'getJob'), async (request) => {
    const job = await findModel(request, parseModel(request.body).model_id);
    continueAs(request, 'getJob', { job_id: job.id });
    const name = baseNameOf(job);
    return {
      type: 'get_info',
      model_id: job.id,
      model_name: name,
      model_data: { arch: job.spec.model.config.model_type, model_name: name },
      ...loraOf(job),
    };
  });

  app.get('/training_runs/:model_id', routeAs(app, 'getJob'), async (request) => {
    const job = await findModel(request, parseModel(request.params).model_id);
    continueAs(request, 'getJob', { job_id: job.id });
    const own = Object.entries(job.labels).filter(([name]) => !name.startsWith(OWN_LABEL));
    return {
      training_run_id: job.id,
      base_model: baseNameOf(job),
      model_owner: job.spec.project,
      ...loraOf(job),
      last_request_time: job.updated_at,
      user_metadata: Object.fromEntries(own),
    };
  });

  app.post('/unload_model', routeAs(app, 'putCall'), async (request) => {
    const body = request.body as Buffer;
    const { model_id } = parseModel(
      await app.services.inspector.run('readTinkerJson', { body }, { owner: request.records.project }),
    );
    const job = await findModel(request, model_id);
    continueAs(request, 'putCall', { job_id: job.id });
    const finish = Buffer.from(JSON.stringify({ type: 'finish' }));
    const named = await checkNamed(request, { job, name: 'unload', body: finish });
    const number = await appendNamed(request, job, named);
    return { request_id: requestId({ job_id: job.id, number, kind: 'unload' }), model_id };
  });
}

function baseNameOf({ id, labels, spec }: Job): string {
  return labels[LABELS.base] ?? spec.model.preset ?? id;
}

function loraOf({ spec: { train } }: Job) {
  return { is_lora: train.adapter !== undefined, lora_rank: train.adapter?.rank ?? null };
}

type Base = Pick<JobSpec, 'model'> & { sequence_length: number; hasAdapter: boolean };
type Lora = NonNullable<CreateModel['lora_config']>;

const PRESET_LENGTH = 512;

/** Finds a base model: a preset, an uploaded model, or what a job trained. @throws Refusal; ZerofleetError */
async function baseOf(request: FastifyRequest, name: string): Promise<Base> {
  const preset = VALUES.PresetName.find((each) => each === name);
  if (preset === undefined) return findBase(request, name);
  return { model: { preset }, sequence_length: PRESET_LENGTH, hasAdapter: false };
}

function sessionOf(
  { model, sequence_length, hasAdapter }: Base,
  { labels, lora }: { labels: Record<string, string>; lora?: Lora },
): JobSpec {
  const seed = lora?.seed;
  return {
    name: 'tinker',
    labels,
    model,
    data: {},
    train: {
      session: {},
      sequence_length,
      global_batch_size: MAX_ROWS,
      ...(lora !== undefined && !hasAdapter && { adapter: adapterOf(lora) }),
      ...(typeof seed === 'number' && { seed }),
    },
  };
}

function adapterOf({ rank, train_mlp = true, train_attn = true }: Lora) {
  const modules = [...(train_attn ? ATTENTION : []), ...(train_mlp ? MLP : [])];
  return { rank, alpha: ALPHA, target_modules: train_attn && train_mlp ? ('all-linear' as const) : modules };
}

/** @throws Refusal for a label that this API sets itself */
function labelsOf(metadata: CreateModel['user_metadata']): Record<string, string> {
  const own = Object.keys(metadata ?? {}).find((name) => name.startsWith(OWN_LABEL));
  if (own !== undefined)
    throw notSupported(
      'user_metadata',
      `${own} cannot be set; use a name that does not begin with ${OWN_LABEL}`,
    );
  return Object.fromEntries(Object.entries(metadata ?? {}).map(([name, value]) => [name, String(value)]));
}

/** Creates a session, or finds the one that the same request has created. */
async function createSession(
  request: FastifyRequest,
  reply: FastifyReply,
  { document, key }: { document: JobSpec; key: string },
): Promise<CreateJobResult> {
  continueAs(request, 'createJob', {});
  request.headers['idempotency-key'] = `tinker:${key}`;
  const schemaErrors = request.server.services.contract.jobSpecErrors(document);
  const created = await createJob(request, reply, { document, schemaErrors });
  request.params = { job_id: created.job.id };
  return created;
}

/** Creates a session of a base model that only samples. */
export async function createBaseSampler(
  request: FastifyRequest,
  reply: FastifyReply,
  { name, key }: { name: string; key: string },
): Promise<Weights> {
  const labels = { [LABELS.base]: name };
  const document = sessionOf(await baseOf(request, name), { labels });
  return { job_id: (await createSession(request, reply, { document, key })).job.id, number: 0 };
}

interface Fork {
  checkpoint: Checkpoint;
  key: string;
  /** Name that the client gives the model. */
  model_id?: string;
  user_metadata?: CreateModel['user_metadata'];
  restore?: 'continue' | 'weights';
}

/** Creates a session that begins with the state of a checkpoint, or finds the one that the same request has created. */
export async function forkSession(
  request: FastifyRequest,
  reply: FastifyReply,
  { checkpoint, key, model_id, user_metadata, restore = 'continue' }: Fork,
): Promise<CreateJobResult> {
  const { spec, labels } = await findSession(request, checkpoint.job_id);
  const fork = forkDocument(spec, checkpoint, {}) as JobSpec;
  const document: JobSpec = {
    ...fork,
    model: modelFrom(spec.model, checkpoint.id, restore),
    labels: {
      ...labelsOf(user_metadata),
      [LABELS.base]: labels[LABELS.base] ?? checkpoint.job_id,
      ...(model_id && { [LABELS.model]: model_id }),
    },
  };
  return createSession(request, reply, { document, key });
}

/** Creates a session that begins as another one has begun, or finds the one that the same request has created. */
export async function repeatSession(
  request: FastifyRequest,
  reply: FastifyReply,
  { job, key }: { job: Job; key: string },
): Promise<CreateJobResult> {
  const given = await readGiven(request.server.services.objects, job.id);
  if (given === null) throw notFound('job', job.id);
  const document = { ...given, labels: { [LABELS.base]: job.labels[LABELS.base] ?? job.id } };
  return createSession(request, reply, { document, key });
}

/** Finds the checkpoint that a call has saved. @throws ZerofleetError `checkpoint_not_found` */
export async function checkpointOf(
  request: FastifyRequest,
  reply: FastifyReply,
  { job_id, number }: Weights,
): Promise<Checkpoint> {
  requireOperation(request, 'getCheckpoint');
  await findSession(request, job_id);
  const { objects } = request.server.services;
  if (number > 0 && (await waitAnswered(request, reply, { job_id, number, seconds: SAVE_SECONDS }))) {
    const result = await readCallResult(objects, job_id, number);
    if ('checkpoint' in result) return findCheckpoint(request.records, result.checkpoint);
  }
  throw checkpointNotFound(`call ${number} of ${job_id} has saved no state`);
}

/** Finds the session of a model, by the id of its job or by the name that the client gave it. @throws ZerofleetError */
export async function findModel(request: FastifyRequest, id: string): Promise<Job> {
  if (isId('job', id)) return findSession(request, id);
  if (id.length > MAX_NAME) throw notFound('model', `${id.slice(0, MAX_NAME)}…`);
  requireOperation(request, 'listJobs');
  for (let after: string | null = null; ; ) {
    const label = [`${LABELS.model}=${id}`];
    const page: Page<Job> = await request.records.listJobs({ label, ...(after !== null && { after }) });
    const job = page.data.find(isModel);
    if (job !== undefined) return job;
    if (page.next_cursor === null) throw notFound('model', id);
    after = page.next_cursor;
  }
}

/** Refuses another base than that of saved weights. @throws Refusal */
export function requireNoBase(base: string | null | undefined): void {
  if (typeof base === 'string')
    throw notSupported('base_model', 'base_model cannot replace the base of saved weights; leave it out');
}

/** Any job may have any labels. */
function isModel({ spec, labels }: Job): boolean {
  return spec.train.session !== undefined && labels[LABELS.base] !== undefined;
}
