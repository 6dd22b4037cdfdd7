/** Data and bases that a command line names: by path, URI, name or id. */
import { existsSync, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { type Dataset, isSourceUri, type JobSpec } from '../../contracts/index.js';
import { presets } from '../../job-document/index.js';
import { uploadDataset } from './commands/data.js';
import type { Context } from './context.js';
import { archiveOf } from './model-archive.js';
import { findId } from './names.js';

/** Uploads a file, or finds a dataset by name or id. A URI stays what it is. */
export async function datasetNamed(context: Context, given: string): Promise<Dataset | { uri: string }> {
  if (isSourceUri(given)) return { uri: given };
  if (existsSync(given) && statSync(given).isFile()) return uploadDataset(context, given, {});
  const id = await findId(context.client, 'dataset', given);
  return context.client.datasets.get(id);
}

/** The section `model` of a document that begins with a base. A folder is uploaded. */
export async function baseNamed(context: Context, given: string): Promise<JobSpec['model']> {
  const { client } = context;
  if (isSourceUri(given)) return { init_from: given };
  if (given in presets) return { preset: given as keyof typeof presets };
  if (existsSync(given) && statSync(given).isDirectory()) {
    const { id } = await client.models.create(basename(resolve(given)), await archiveOf(given));
    context.note(`model ${basename(resolve(given))}: ${id}`);
    return { init_from: { model: id } };
  }
  const isTrained = /^(job|ckpt)_/.test(given) || /@\d+$/.test(given);
  const uploaded = isTrained ? null : await modelOrNull(context, given);
  return uploaded === null ? trainedBase(context, given) : { init_from: { model: uploaded } };
}

/** A name may be that of a model or of a job. */
async function modelOrNull({ client }: Context, given: string): Promise<string | null> {
  try {
    return await findId(client, 'model', given);
  } catch (error) {
    for await (const _ of client.jobs.list({ name: given, limit: 1 })) return null;
    throw error;
  }
}

async function trainedBase({ client }: Context, given: string): Promise<JobSpec['model']> {
  const checkpoint = await client.checkpoints.get(await findId(client, 'checkpoint', given));
  const { preset, config } = (await client.jobs.get(checkpoint.job_id)).spec.model;
  const initFrom = { checkpoint: checkpoint.id, restore: 'weights' as const };
  return preset === null ? { config, init_from: initFrom } : { preset, init_from: initFrom };
}

/** A document whose data and base may be named by paths and names. */
export async function withIds(context: Context, spec: JobSpec): Promise<JobSpec> {
  const { data, model } = spec;
  const dataset = data?.dataset;
  const from = model?.init_from;
  return {
    ...spec,
    ...(isName(dataset) && { data: { ...data, ...(await dataOf(context, dataset)) } }),
    ...(isName(from) && { model: { ...model, ...(await baseNamed(context, from)) } }),
  };
}

/** The API explains what is wrong with an id. */
const ID = /^(ds|mdl|ckpt|job)_/;
const isName = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && !ID.test(value) && !isSourceUri(value);

async function dataOf(context: Context, given: string): Promise<{ dataset: string }> {
  const found = await datasetNamed(context, given);
  return { dataset: 'id' in found ? found.id : found.uri };
}
