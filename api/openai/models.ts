/** `/models`: uploaded models, and what jobs trained, as `ft:BASE:PROJECT:SUFFIX:ID` of a job or a checkpoint. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Model as ListedModel, ModelDeleted } from 'openai/resources/models';
import type { Job, JobSpec, Model, Page } from '../../contracts/index.js';
import { architectureOf, importConfig } from '../../job-document/index.js';
import { findCheckpoint, findJob, found } from '../access/found.js';
import type { ProjectRecords } from '../access/project-records.js';
import { type AnsweringModel, checkpointModel, uploadedModel } from '../answers/sources.js';
import { requireOperation } from '../http/authenticate.js';
import { deleteCheckpoint, deleteJob } from '../jobs/changes/deletions.js';
import { removeModel } from '../models/store-model.js';
import { notFound } from './errors.js';
import { isId } from './ids.js';
import { LABELS } from './labels.js';
import { secondsOf } from './pages.js';
import { continueAs, routeAs } from './route-as.js';

const FINE_TUNED = /^ft:.*:((?:job|ckpt)_[0-9A-HJKMNP-TV-Z]{26})$/;
/** Longest sequence of a job, where the model allows more: activations grow with it. */
const MAX_LENGTH = 2048;
/** Models of each kind in the list, the newest: it has no pages. */
const LISTED = 100;

/** Model to fine-tune. */
export interface BaseModel {
  model: JobSpec['model'];
  sequence_length: number;
  /** True if it is an adapter over a base, which is trained on. */
  hasAdapter: boolean;
}

/** Returns the name of what a job trained, or of one of its checkpoints. */
export function fineTunedName(job: Pick<Job, 'id' | 'spec' | 'labels'>, id: string = job.id): string {
  const { init_from, preset } = job.spec.model;
  const source = init_from === null ? null : 'model' in init_from ? init_from.model : init_from.checkpoint;
  const base = job.labels[LABELS.model] ?? preset ?? source ?? job.spec.model.config.model_type;
  return ['ft', partOf(base), job.spec.project, partOf(job.labels[LABELS.suffix] ?? ''), id].join(':');
}

/** Returns a name as a part of another one. What a job trained on has the name of its first base. */
function partOf(name: string): string {
  const first = FINE_TUNED.test(name) ? (name.split(':')[1] ?? '') : name;
  return first.replace(/[^A-Za-z0-9._-]+/g, '-');
}

type Named = { uploaded: Model } | { trained: string };

/**
 * Finds the model with a name: an uploaded one by its id or name, or what a job trained. @throws Refusal;
 * ZerofleetError
 */
async function find(request: FastifyRequest, name: string): Promise<Named> {
  const trained = FINE_TUNED.exec(name)?.[1];
  if (trained !== undefined) return { trained };
  requireOperation(request, 'getModel');
  const { records } = request;
  if (isId('model', name)) return { uploaded: found(await records.getModel(name), 'model', name) };
  const uploaded = await findByName(records, name);
  if (uploaded !== null) return { uploaded };
  throw notFound('model', `there is no model ${name}; upload it (POST /v1/models?name=${name})`);
}

/** Finds the model to fine-tune. @throws Refusal; ZerofleetError */
export async function findBase(request: FastifyRequest, name: string): Promise<BaseModel> {
  const named = await find(request, name);
  if ('trained' in named) return baseOfCheckpoint(request, named.trained);
  const { uploaded } = named;
  return {
    model: { init_from: { model: uploaded.id } },
    sequence_length: lengthOf(uploaded),
    hasAdapter: uploaded.adapter !== undefined,
  };
}

/** Finds a model with weights. */
async function findByName(records: ProjectRecords, name: string): Promise<Model | null> {
  for (let after: string | null = null; ; ) {
    const page: Page<Model> = await records.listModels({ name, ...(after !== null && { after }) });
    const model = page.data.find(({ model_type }) => model_type !== null);
    if (model !== undefined) return model;
    if (page.next_cursor === null) return null;
    after = page.next_cursor;
  }
}

/** Finds the model that answers, by which the request is another operation. @throws Refusal; ZerofleetError */
export async function findAnswering(request: FastifyRequest, name: string): Promise<AnsweringModel> {
  const named = await find(request, name);
  request.operation = requireOperation(request, 'uploaded' in named ? 'sampleModel' : 'sampleCheckpoint');
  if ('uploaded' in named) return uploadedModel(named.uploaded);
  const { trained } = named;
  if (!isId('checkpoint', trained))
    return checkpointModel(request, (await findTrained(request, trained)).checkpoint);
  requireOperation(request, 'getCheckpoint');
  return checkpointModel(request, trained);
}

async function baseOfCheckpoint(request: FastifyRequest, id: string): Promise<BaseModel> {
  const { job, checkpoint } = await findTrained(request, id);
  const { spec } = job;
  return {
    model: { config: spec.model.config, init_from: { checkpoint } },
    sequence_length: spec.train.sequence_length,
    hasAdapter: spec.train.adapter !== undefined,
  };
}

function lengthOf({ config }: Model): number {
  const { config: imported } = importConfig(config);
  const length = imported === null ? MAX_LENGTH : architectureOf(imported).max_position_embeddings;
  return Math.min(length, MAX_LENGTH);
}

/**
 * Finds what a name of a trained model ends with: a job, which answers by its last checkpoint, or one of its
 * checkpoints.
 */
async function findTrained(request: FastifyRequest, id: string): Promise<{ job: Job; checkpoint: string }> {
  const { records } = request;
  if (isId('checkpoint', id)) requireOperation(request, 'getCheckpoint');
  const jobId = isId('checkpoint', id) ? (await findCheckpoint(records, id)).job_id : id;
  requireOperation(request, 'getJob', { job_id: jobId });
  const job = await findJob(records, jobId);
  const checkpoint = isId('checkpoint', id) ? id : job.export?.checkpoint_id;
  if (checkpoint !== undefined) return { job, checkpoint };
  throw notFound('model', `job ${id} has not trained a model yet`);
}

interface NamedRoute {
  Params: { '*': string };
}

export async function modelRoutes(app: FastifyInstance): Promise<void> {
  app.get('/models', routeAs(app, 'listModels'), async (request) => {
    requireOperation(request, 'listJobs');
    const { records } = request;
    const [uploaded, trained] = await Promise.all([
      records.listModels({ limit: LISTED }),
      newestTrained(records),
    ]);
    const complete = uploaded.data.filter(({ model_type }) => model_type !== null);
    return {
      object: 'list',
      data: [...complete.map(listedModel), ...trained.map((job) => trainedModel(job))],
    };
  });

  // A name may have slashes, as those of the hub.
  app.get<NamedRoute>('/models/*', async (request): Promise<ListedModel> => {
    const named = await find(request, request.params['*']);
    if ('uploaded' in named) return listedModel(named.uploaded);
    return trainedModel((await findTrained(request, named.trained)).job, named.trained);
  });

  app.delete<NamedRoute>('/models/*', async (request): Promise<ModelDeleted> => {
    const { '*': id } = request.params;
    await remove(request, await find(request, id));
    return { id, object: 'model', deleted: true };
  });
}

async function newestTrained(records: ProjectRecords): Promise<Job[]> {
  const jobs: Job[] = [];
  // A page may have fewer jobs than its limit: a read examines a limited number of jobs.
  for (let after: string | null = null; ; ) {
    const page: Page<Job> = await records.listJobs({
      state: ['succeeded'],
      limit: LISTED - jobs.length,
      ...(after !== null && { after }),
    });
    jobs.push(...page.data);
    if (page.next_cursor === null || jobs.length === LISTED) return jobs;
    after = page.next_cursor;
  }
}

async function remove(request: FastifyRequest, named: Named): Promise<void> {
  const { records, server } = request;
  const { services } = server;
  if ('uploaded' in named) {
    const { id } = named.uploaded;
    continueAs(request, 'deleteModel', { model_id: id });
    return removeModel(services.objects, records, id);
  }
  const { job, checkpoint } = await findTrained(request, named.trained);
  if (job.id === named.trained) {
    continueAs(request, 'deleteJob', { job_id: job.id });
    return deleteJob(services, records, job.id, { artifacts: false });
  }
  continueAs(request, 'deleteCheckpoint', { checkpoint_id: checkpoint });
  return deleteCheckpoint(services, records, checkpoint);
}

function listedModel({ id, created_at, project }: Model): ListedModel {
  return { id, object: 'model', created: secondsOf(created_at), owned_by: project };
}

function trainedModel(job: Job, id: string = job.id): ListedModel {
  const { created_at, spec } = job;
  return {
    id: fineTunedName(job, id),
    object: 'model',
    created: secondsOf(created_at),
    owned_by: spec.project,
  };
}
