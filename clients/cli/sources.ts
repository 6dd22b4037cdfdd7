/** Data and bases that a command line names: by path, URI, name or id. */
import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { type Dataset, isSourceUri, type JobSpec } from '../../contracts/index.js';
import { presets } from '../../job-document/index.js';
import { modelFrom } from '../typescript/fork-document.js';
import { collect } from '../typescript/index.js';
import { uploadDataset } from './commands/data.js';
import { CliError, type Context, EXIT } from './context.js';
import { archiveOf } from './model-archive.js';
import { findId, WHOLE_ID } from './names.js';

/** Uploads a file, or finds a dataset by name or id. */
export async function datasetNamed(context: Context, given: string): Promise<Dataset> {
  if (statSync(given, { throwIfNoEntry: false })?.isFile()) return uploadDataset(context, given, {});
  const id = await findId(context.client, 'dataset', given).catch((error) => {
    if (!(error instanceof CliError) || error.exitCode !== EXIT.failed) throw error;
    throw new CliError(`there is no file ${given}, and ${error.message}`, EXIT.failed);
  });
  return context.client.datasets.get(id);
}

/** The section `model` of a document that begins with a base. A folder is uploaded. */
export async function baseNamed(context: Context, given: string): Promise<JobSpec['model']> {
  const { client } = context;
  if (isSourceUri(given)) return { init_from: given };
  if (Object.hasOwn(presets, given)) return { preset: given as keyof typeof presets };
  if (statSync(given, { throwIfNoEntry: false })?.isDirectory()) {
    const { id } = await client.models.create(basename(resolve(given)), await archiveOf(given));
    context.note(`model ${basename(resolve(given))}: ${id}`);
    return { init_from: { model: id } };
  }
  const isTrained = /^(job|ckpt)_/.test(given) || /@\d+$/.test(given);
  const uploaded = isTrained ? null : await modelOrNull(context, given);
  return uploaded === null ? trainedBase(context, given) : { init_from: { model: uploaded } };
}

/** A name may be that of a model, or else of a job. A name takes precedence over the prefix of a model's id. */
async function modelOrNull({ client }: Context, given: string): Promise<string | null> {
  const one = { name: given, limit: 1 };
  const isModel = (await collect(client.models.list(one), 1)).length > 0;
  const isJob = !isModel && (await collect(client.jobs.list(one), 1)).length > 0;
  return isJob ? null : findId(client, 'model', given);
}

async function trainedBase({ client }: Context, given: string): Promise<JobSpec['model']> {
  const checkpoint = await client.checkpoints.get(await findId(client, 'checkpoint', given));
  const { spec } = await client.jobs.get(checkpoint.job_id);
  return modelFrom(spec.model, checkpoint.id, 'weights');
}

/** A document whose data and base may be named by paths and names. */
export async function withIds(context: Context, spec: JobSpec): Promise<JobSpec> {
  const { data, model } = spec;
  const dataset = data?.dataset;
  const { init_from: from, ...others } = model ?? {};
  return {
    ...spec,
    ...(isName(dataset) && { data: { ...data, dataset: (await datasetNamed(context, dataset)).id } }),
    ...(isName(from) && { model: { ...others, ...(await baseNamed(context, from)) } }),
  };
}

/** True for what the API does not read: no URI, and no id of a dataset, model or checkpoint. */
const isName = (value: unknown): value is string =>
  typeof value === 'string' &&
  value !== '' &&
  !isSourceUri(value) &&
  (!WHOLE_ID.test(value) || value.startsWith('job_'));
