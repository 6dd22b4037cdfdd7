import { type Model, modelDocumentKey, modelKey, ZerofleetError } from '../../contracts/index.js';
import { removeFolder } from '../../formats/checkpoint/remove-folder.js';
import { TOKENIZER_FILE } from '../../formats/models/documents.js';
import type { Logger } from '../../platform/logging/logging.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { newUlid } from '../../platform/random.js';
import { type ModelRecords, type Projects, putModelDocument } from '../../state/index.js';
import { notFound } from '../access/found.js';
import type { ProjectRecords } from '../access/project-records.js';
import { requireStorage } from '../access/storage-quota.js';
import { mayBeRecorded } from '../copies/may-be-recorded.js';
import { untilAborted } from '../http/long-request.js';
import type { ApiLimits } from '../limits.js';
import { tooLarge } from './archive.js';
import type { BucketModel } from './bucket-folder.js';
import type { BucketTokenizer } from './bucket-tokenizers.js';
import { type BaseModel, ModelUpload, type ModelUploadDeps, type StoredModel } from './upload.js';

interface StoreModelDeps extends ModelUploadDeps {
  store: Pick<ModelRecords, 'putModel'>;
  log: Pick<Logger, 'warn'>;
}

export interface CopyFolderDeps extends StoreModelDeps {
  store: Pick<ModelRecords, 'putModel'> & Pick<Projects, 'getQuota' | 'getUse'>;
  limits: Pick<ApiLimits, 'model_bytes'>;
}

/** Model properties that are known before its files are read. */
export interface ModelHead extends Pick<Model, 'project' | 'name'> {
  /** Model that the adapter is over; null for a model of its own. */
  base: BaseModel | null;
}

/**
 * Stores the files, then the record: the model exists only when all of it is durable.
 * @throws errors of `storeFiles` and of the job store
 */
export async function storeModel(
  { store, objects, inspector, log }: StoreModelDeps,
  { project, name, base }: ModelHead,
  storeFiles: (upload: ModelUpload) => Promise<StoredModel>,
): Promise<Model> {
  const id = `mdl_${newUlid()}`;
  const upload = new ModelUpload({ objects, inspector }, id, project, base);
  try {
    const stored = await storeFiles(upload);
    const createdAt = new Date().toISOString();
    const baseField = base === null ? {} : { base: base.id };
    const model = { id, project, name, description: '', ...stored, ...baseField, created_at: createdAt };
    await putModelDocument(objects, model);
    await store.putModel(model);
    return model;
  } catch (error) {
    await objects
      .delete([modelDocumentKey(id)])
      .then(() => (mayBeRecorded(error) ? undefined : upload.discard()))
      .catch((cause: unknown) => log.warn({ err: cause, model: id }, 'orphaned files of a model'));
    throw error;
  }
}

/**
 * Copies the files of a bucket folder: later changes of the folder affect no job.
 * @throws ZerofleetError `model_too_large`, `storage_quota_exceeded`, errors of an upload and of reading the bucket
 */
export async function copyFolder(
  deps: CopyFolderDeps,
  head: ModelHead,
  folder: BucketModel,
  signal: AbortSignal,
): Promise<Model> {
  const { store, limits } = deps;
  requireSize(folder, limits);
  await requireStorage(store, head.project, String(folder.bytes));
  return storeModel(deps, head, async (upload) => ({
    ...(await upload.store(folder.files(signal), folder.ignored)),
    source: folder.source,
  }));
}

/**
 * Copies a tokenizer to a model of one file.
 * @throws ZerofleetError `storage_quota_exceeded`, `tokenizer_invalid`, and errors of reading the bucket
 */
export async function copyTokenizer(
  deps: CopyFolderDeps,
  head: ModelHead,
  { source, object, digest }: BucketTokenizer,
  signal: AbortSignal,
): Promise<Model> {
  const { bytes } = object;
  await requireStorage(deps.store, head.project, String(bytes));
  return storeModel(deps, head, async (upload) => {
    const content = untilAborted(object.read(signal), signal);
    const stored = await upload.storeTokenizer({ name: TOKENIZER_FILE, kind: 'document', bytes, content });
    if (stored.digest === digest) return { ...stored, source };
    throw new ZerofleetError('dataset_source_changed', `${source.uri} was changed after it was first read`);
  });
}

/** @throws ZerofleetError `model_too_large` */
export function requireSize({ bytes }: BucketModel, { model_bytes }: Pick<ApiLimits, 'model_bytes'>): void {
  if (bytes > model_bytes) throw tooLarge(model_bytes);
}

/** @throws ZerofleetError `model_not_found`, `model_in_use` */
export async function removeModel(
  objects: ObjectStore,
  records: Pick<ProjectRecords, 'deleteModel'>,
  id: string,
): Promise<void> {
  // The record first: a crash in between leaves unreferenced bytes instead of a record without bytes.
  if (!(await records.deleteModel(id))) throw notFound('model', id);
  await removeFolder(objects, modelKey(id));
}
