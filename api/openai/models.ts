/** `/models`: uploaded models, and what jobs trained, as `ft:BASE:PROJECT:SUFFIX:ID` of a job or a checkpoint. */
import type { FastifyInstance } from 'fastify';
import type { Model as ListedModel, ModelDeleted } from 'openai/resources/models';
import { collect, type Zerofleet } from '../../clients/typescript/index.js';
import type { Job, JobSpec, Model } from '../../contracts/index.js';
import { architectureOf, importConfig } from '../../job-document/index.js';
import { notFound } from './errors.js';
import { LABELS } from './labels.js';
import { ownApi } from './own-api.js';
import { secondsOf } from './pages.js';

const FINE_TUNED = /^ft:.*:((?:job|ckpt)_[0-9A-HJKMNP-TV-Z]{26})$/;
const UPLOADED = /^mdl_[0-9A-HJKMNP-TV-Z]{26}$/;
/** Longest sequence of a job, where the model allows more: activations grow with it. */
const MAX_LENGTH = 2048;
/** Models of each kind in the list, the newest: it has no pages. One page of the own API. */
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

/** Finds the model with a name: an uploaded one by its id or name, or what a job trained. @throws Refusal; ApiError */
async function find(api: Zerofleet, name: string): Promise<Named> {
  const trained = FINE_TUNED.exec(name)?.[1];
  if (trained !== undefined) return { trained };
  const uploaded = UPLOADED.test(name) ? await api.models.get(name) : await findByName(api, name);
  if (uploaded !== null) return { uploaded };
  throw notFound('model', `there is no model ${name}; upload it (POST /v1/models?name=${name})`);
}

/** Finds the model to fine-tune. @throws Refusal; ApiError */
export async function findBase(api: Zerofleet, name: string): Promise<BaseModel> {
  const named = await find(api, name);
  if ('trained' in named) return baseOfCheckpoint(api, named.trained);
  const { uploaded } = named;
  return {
    model: { init_from: { model: uploaded.id } },
    sequence_length: lengthOf(uploaded),
    hasAdapter: uploaded.adapter !== undefined,
  };
}

async function findByName(api: Zerofleet, name: string): Promise<Model | null> {
  for await (const model of api.models.list({ name })) if (model.model_type !== null) return model;
  return null;
}

/** Returns the checkpoint, or the uploaded model, that answers. @throws Refusal; ApiError */
export async function findAnswering(api: Zerofleet, name: string): Promise<string> {
  const named = await find(api, name);
  return 'uploaded' in named ? named.uploaded.id : (await findTrained(api, named.trained)).checkpoint;
}

async function baseOfCheckpoint(api: Zerofleet, id: string): Promise<BaseModel> {
  const { job, checkpoint } = await findTrained(api, id);
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

/** Finds what a name of a trained model ends with: a job, which answers by its last checkpoint, or one of its checkpoints. */
async function findTrained(api: Zerofleet, id: string): Promise<{ job: Job; checkpoint: string }> {
  const isCheckpoint = id.startsWith('ckpt_');
  const job = await api.jobs.get(isCheckpoint ? (await api.checkpoints.get(id)).job_id : id);
  const checkpoint = isCheckpoint ? id : job.export?.checkpoint_id;
  if (checkpoint !== undefined) return { job, checkpoint };
  throw notFound('model', `job ${id} has not trained a model yet`);
}

interface NamedRoute {
  Params: { '*': string };
}

export async function modelRoutes(app: FastifyInstance): Promise<void> {
  app.get('/models', async (request) => {
    const api = ownApi(request);
    const [uploaded, trained] = await Promise.all([
      collect(api.models.list({ limit: LISTED }), LISTED),
      collect(api.jobs.list({ state: ['succeeded'], limit: LISTED }), LISTED),
    ]);
    const complete = uploaded.filter(({ model_type }) => model_type !== null);
    return {
      object: 'list',
      data: [...complete.map(uploadedModel), ...trained.map((job) => trainedModel(job))],
    };
  });

  // A name may have slashes, as those of the hub.
  app.get<NamedRoute>('/models/*', async (request): Promise<ListedModel> => {
    const api = ownApi(request);
    const named = await find(api, request.params['*']);
    if ('uploaded' in named) return uploadedModel(named.uploaded);
    return trainedModel((await findTrained(api, named.trained)).job, named.trained);
  });

  app.delete<NamedRoute>('/models/*', async (request): Promise<ModelDeleted> => {
    const api = ownApi(request);
    const { '*': id } = request.params;
    const named = await find(api, id);
    if ('uploaded' in named) await api.models.delete(named.uploaded.id);
    else {
      const { job, checkpoint } = await findTrained(api, named.trained);
      if (job.id === named.trained) await api.jobs.delete(job.id);
      else await api.checkpoints.delete(checkpoint);
    }
    return { id, object: 'model', deleted: true };
  });
}

function uploadedModel({ id, created_at, project }: Model): ListedModel {
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
