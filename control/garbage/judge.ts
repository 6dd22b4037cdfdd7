/**
 * Check that a folder is referenced. One reference suffices: a record in the job store, or a document
 * committed beside the objects (`dataset.json`, `MODEL.json`, `MANIFEST.json`, `EXPORT.json`, the acceptance
 * of a job). `recover` rebuilds records from these documents, so a job store that has lost its records
 * creates no leftovers.
 */
import { epochOf } from '../../contracts/execution.js';
import { datasetDocumentKey, isFinal, type Job, modelDocumentKey } from '../../contracts/index.js';
import { exportRecordKey } from '../../formats/checkpoint/export-record.js';
import {
  deletedKey,
  desiredKey,
  jobKey,
  MANIFEST_FILE,
  parseCheckpointDirectory,
  specKey,
} from '../../formats/checkpoint/layout.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { type JobStore, parseSpec } from '../../state/index.js';
import { type DeletedDocument, readDeleted } from '../recovery/deletion.js';
import type { Folder } from './folders.js';

export interface Stores {
  store: Pick<JobStore, 'getDataset' | 'getModel' | 'getJob'>;
  objects: ObjectStore;
}

/** Kind of a leftover; null for a referenced folder. */
export type Leftover =
  | 'dataset upload'
  | 'model upload'
  | 'abandoned upload'
  | 'save'
  | 'export'
  | 'job document'
  | 'deleted job'
  | null;

export async function leftoverOf(stores: Stores, folder: Folder): Promise<Leftover> {
  const [root, id = ''] = folder.key.split('/');
  const { store } = stores;
  const has = (key: string) => folder.objects.some((object) => object.key === key);
  if (root === 'datasets')
    return has(datasetDocumentKey(id)) || (await store.getDataset(id)) ? null : 'dataset upload';
  if (root === 'models')
    return has(modelDocumentKey(id)) || (await store.getModel(id)) ? null : 'model upload';
  // A client that uploads parts changes the folder; this one has been idle for the grace period.
  if (root === 'uploads') return 'abandoned upload';
  return root === 'jobs' ? ofJob(stores, folder) : null;
}

async function ofJob(stores: Stores, folder: Folder): Promise<Leftover> {
  const [, id = '', kind, name = ''] = folder.key.split('/');
  const committed = [`${folder.key}/${MANIFEST_FILE}`, exportRecordKey(folder.key)];
  const isCommitted = folder.objects.some(({ key }) => committed.includes(key));
  const job = await stores.store.getJob(id);
  const deleted = job ? null : await readDeleted(stores.objects, id);
  if (deleted) return ofDeleted(stores.objects, folder, { deleted, kind, is_committed: isCommitted });
  if (isCommitted) return null;
  if (!job) return (await wasAccepted(stores.objects, id)) ? null : neverAccepted(folder, id, kind);
  if (kind === 'checkpoints') return isDeadSave(job, name) ? 'save' : null;
  if (kind === 'exports') return isDeadExport(job, folder.key, name) ? 'export' : null;
  return null;
}

interface OfDeleted {
  deleted: DeletedDocument;
  kind: string | undefined;
  is_committed: boolean;
}

/** Judges a folder of a job whose deletion was interrupted, or whose artifacts were kept. */
async function ofDeleted(objects: ObjectStore, { key }: Folder, leftover: OfDeleted): Promise<Leftover> {
  const { deleted, kind, is_committed } = leftover;
  const { job_id, artifacts } = deleted;
  const isDocument = kind !== 'checkpoints' && kind !== 'exports';
  if (key !== deletedKey(job_id)) {
    if (artifacts === 'removed' || isDocument) return 'deleted job';
    // The export at the end of a job has no record.
    return is_committed || kind === 'exports' ? null : 'save';
  }
  if (artifacts === 'kept') return null;
  for await (const object of objects.list(`${jobKey(job_id)}/`)) if (object.key !== key) return null;
  return 'deleted job';
}

/** Judges a folder of a job that was never acknowledged: its creation was interrupted or refused. */
function neverAccepted({ key }: Folder, id: string, kind: string | undefined): Leftover {
  if (kind === 'checkpoints') return 'save';
  if (kind === 'exports') return 'export';
  return key === specKey(id) ? 'job document' : null;
}

/** Returns true if `recover` would rebuild the job, or if that is unknown. */
async function wasAccepted(objects: ObjectStore, id: string): Promise<boolean> {
  if (await objects.head(desiredKey(id))) return true;
  if (!(await objects.head(specKey(id)))) return false;
  try {
    // Jobs of version 1 had no desired.json.
    return parseSpec(await objects.get(specKey(id))).format_version === 1;
  } catch {
    return true;
  }
}

/** Returns true for a save without a manifest that can never get one, because its epoch has ended. */
function isDeadSave(job: Job, name: string): boolean {
  const save = parseCheckpointDirectory(name);
  if (!save) return false;
  if (isFinal(job.state)) return true;
  const hasNoWorker = job.state === 'queued' || job.state === 'paused';
  const epoch = epochOf(save.execution);
  return epoch < job.epoch || (hasNoWorker && epoch === job.epoch);
}

/**
 * Returns true for an abandoned export without a record. The export at the end of a job has no record either,
 * but the job refers to it after success.
 */
function isDeadExport(job: Job, key: string, name: string): boolean {
  const isRequested = !/^\d+$/.test(name);
  return isRequested || (isFinal(job.state) && job.state !== 'succeeded' && job.export?.prefix !== key);
}
