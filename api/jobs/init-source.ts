import type { FieldError, FieldErrorCode } from '../../contracts/index.js';
import { MANIFEST_FILE } from '../../formats/checkpoint/layout.js';
import type { CheckpointSource, InitFrom, InitSource } from '../../job-document/index.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import type { JobStore } from '../../state/index.js';

/** Source of a job's initial weights, or the errors of finding it. */
export interface InitLookup<Source extends InitSource = InitSource> {
  source: Source | null;
  errors: FieldError[];
}

/** Result for a document that starts with fresh weights. */
export const NO_SOURCE: InitLookup = { source: null, errors: [] };

interface Stores {
  store: Pick<JobStore, 'getJob' | 'getModel' | 'findCheckpoint'>;
  objects: ObjectStore;
}

/** Finds the source in `model.init_from`. @throws errors of the stores */
export async function findSource(stores: Stores, { checkpoint, model }: InitFrom): Promise<InitLookup> {
  if (model !== undefined) return findModel(stores, model);
  return checkpoint === undefined ? NO_SOURCE : findCheckpoint(stores, checkpoint);
}

async function findModel({ store }: Stores, id: string): Promise<InitLookup> {
  const model = await store.getModel(id);
  if (model === null) return refusal('model', 'model_not_found', `there is no model ${id}`);
  if (model.model_type !== null) return { source: { model }, errors: [] };
  const message = `${id} is a tokenizer without weights; start from a model, or use it as data.tokenizer`;
  return refusal('model', 'model_file_missing', message);
}

/**
 * Finds a checkpoint and the document of its job. Its manifest must exist: a deletion in the object store removes the
 * manifest first.
 * @throws errors of the stores
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
    return refusal('checkpoint', 'checkpoint_removed', message);
  }
  return { source: { checkpoint, spec: job.spec }, errors: [] };
}

function refusal(field: keyof InitFrom, code: FieldErrorCode, message: string): InitLookup<never> {
  return { source: null, errors: [{ pointer: `/model/init_from/${field}`, code, message }] };
}
