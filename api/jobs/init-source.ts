import type { FieldError, FieldErrorCode } from '../../contracts/index.js';
import { MANIFEST_FILE } from '../../platform/checkpoint/layout.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import type { CheckpointSource, InitFrom, InitSource } from '../../spec/index.js';
import type { JobStorePort } from '../../state/index.js';

/** What a job may begin with, or why not. */
export interface InitLookup<Source extends InitSource = InitSource> {
  source: Source | null;
  errors: FieldError[];
}

/** For a document that begins with fresh weights. */
export const NO_SOURCE: InitLookup = { source: null, errors: [] };

interface Stores {
  store: Pick<JobStorePort, 'getJob' | 'getModel' | 'findCheckpoint'>;
  objects: ObjectStore;
}

/**
 * What `model.init_from` names.
 * @throws what the stores throw when they can't be asked
 */
export async function findSource(stores: Stores, { checkpoint, model }: InitFrom): Promise<InitLookup> {
  if (model !== undefined) return findModel(stores, model);
  return checkpoint === undefined ? NO_SOURCE : findCheckpoint(stores, checkpoint);
}

async function findModel({ store }: Stores, id: string): Promise<InitLookup> {
  const model = await store.getModel(id);
  if (model === null) return refusal('model', 'model_not_found', `there is no model ${id}`);
  if (model.model_type !== null) return { source: { model }, errors: [] };
  const message = `${id} is a tokenizer alone, without weights; begin with a model, or name it as data.tokenizer`;
  return refusal('model', 'model_file_missing', message);
}

/**
 * A checkpoint, with the document of its job. The manifest is asked for as well: it is the first that goes when somebody tidies up
 * in the object store.
 * @throws what the stores throw when they can't be asked
 */
export async function findCheckpoint(
  { store, objects }: Stores,
  id: string,
): Promise<InitLookup<CheckpointSource>> {
  const found = await store.findCheckpoint(id);
  if (found === null) return refusal('checkpoint', 'checkpoint_not_found', `there is no checkpoint ${id}`);
  const job = await store.getJob(found.job_id);
  const { checkpoint } = found;
  const manifest = checkpoint && (await objects.head(`${checkpoint.prefix}/${MANIFEST_FILE}`));
  if (checkpoint === null || job === null || manifest === null) {
    const message = `checkpoint ${id} of job ${found.job_id} was removed`;
    return refusal('checkpoint', 'checkpoint_gone', message);
  }
  return { source: { checkpoint, spec: job.spec }, errors: [] };
}

function refusal(field: keyof InitFrom, code: FieldErrorCode, message: string): InitLookup<never> {
  return { source: null, errors: [{ pointer: `/model/init_from/${field}`, code, message }] };
}
