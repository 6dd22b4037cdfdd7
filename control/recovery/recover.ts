/**
 * Rebuilds the records that Redis has lost, all or some of them, from the object store: datasets, models,
 * jobs with their checkpoints, sweeps. Existing records stay as they are. A restored job that was running or waiting
 * is queued and continues from its newest checkpoint; one that had ended, or had been paused or cancelled,
 * stays so.
 */
import { isFinal, type JobState, ZerofleetError } from '../../contracts/index.js';
import { deletedKey } from '../../formats/checkpoint/layout.js';
import { getIfExists } from '../../platform/object-store/common/get-if-exists.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import {
  type DatasetRecords,
  type JobRequests,
  type JobRestore,
  type ModelRecords,
  type Projects,
  parseDataset,
  parseModel,
  parseQuota,
  parseSweep,
  putDesired,
  type SweepRecords,
  type UploadSpace,
} from '../../state/index.js';
import { rebuild } from './rebuild.js';
import { jobKeys, readStoredJob } from './stored-job.js';
import { restoreUpload } from './uploads.js';

interface RecoverOptions {
  store: JobRestore &
    Pick<JobRequests, 'getJob'> &
    Pick<DatasetRecords, 'getDataset' | 'putDataset'> &
    Pick<ModelRecords, 'getModel' | 'putModel'> &
    Pick<UploadSpace, 'reserveUpload'> &
    Pick<Projects, 'getQuota' | 'putQuota'> &
    Pick<SweepRecords, 'getSweep' | 'restoreSweep'>;
  objects: ObjectStore;
  /** Called with each skipped document and the reason. */
  onUnusable(key: string, error: ZerofleetError): void;
}

/** Numbers of restored records. */
export interface Recovered {
  datasets: number;
  models: number;
  sweeps: number;
  jobs: Partial<Record<JobState, number>>;
  checkpoints: number;
  /** Specs of jobs whose creation was interrupted before it was acknowledged to a client. */
  unaccepted: number;
  unusable: number;
  /** Jobs that exist in the job store. */
  untouched: number;
}

/**
 * Restores missing records. Idempotent after an interruption; may run beside active servers and workers.
 * @throws ZerofleetError `job_store_unavailable`; errors of the object store
 */
export async function recover(options: RecoverOptions): Promise<Recovered> {
  const { store, objects } = options;
  const found: Recovered = {
    ...{ datasets: 0, models: 0, sweeps: 0, jobs: {}, checkpoints: 0 },
    ...{ unaccepted: 0, unusable: 0, untouched: 0 },
  };
  const onUnusable = (key: string, error: ZerofleetError) => {
    found.unusable++;
    options.onUnusable(key, error);
  };
  await store.beginRestore();
  // Quotas never refuse restored records, but apply to new ones from the first moment.
  await records(objects, 'projects/', 'quota.json', onUnusable, async (bytes) => {
    const { project, quota } = parseQuota(bytes);
    const hasOne = Object.values(await store.getQuota(project)).some((max) => max !== null);
    if (!hasOne) await store.putQuota(project, quota);
    return !hasOne;
  });
  // Inputs of jobs come first: jobs may start as soon as they are restored.
  found.datasets = await records(objects, 'datasets/', 'dataset.json', onUnusable, async (bytes) => {
    const { dataset } = parseDataset(bytes);
    return (await store.getDataset(dataset.id)) === null && store.putDataset(dataset);
  });
  await records(objects, 'uploads/', 'upload.json', onUnusable, async (bytes) => {
    await restoreUpload({ store, objects }, bytes);
    return true;
  });
  found.models = await records(objects, 'models/', 'MODEL.json', onUnusable, async (bytes) => {
    const { model } = parseModel(bytes);
    if (await store.getModel(model.id)) return false;
    await store.putModel(model);
    return true;
  });
  for await (const { id, keys } of jobKeys(objects)) {
    if (keys.has(deletedKey(id))) continue;
    if (await store.getJob(id)) {
      found.untouched++;
      continue;
    }
    const stored = await readStoredJob(objects, id, keys, onUnusable);
    if (!stored) {
      found.unaccepted++;
      continue;
    }
    const restored = rebuild(stored, Date.now());
    const { job } = restored;
    // Written before any worker can get the new epoch, so that the next rebuild begins above it.
    if (!isFinal(job.state)) await putDesired(objects, restored.job);
    if (!(await store.restoreJob(restored))) continue;
    found.jobs[job.state] = (found.jobs[job.state] ?? 0) + 1;
    found.checkpoints += restored.checkpoints.length;
  }
  // A sweep takes a job that does not exist for a deleted one, so its jobs come first.
  found.sweeps = await records(objects, 'sweeps/', 'sweep.json', onUnusable, async (bytes) => {
    const { sweep } = parseSweep(bytes);
    if (await store.getSweep(sweep.project, sweep.id)) return false;
    await store.restoreSweep(sweep);
    return true;
  });
  await store.endRestore();
  return found;
}

async function records(
  objects: ObjectStore,
  prefix: string,
  name: string,
  onUnusable: RecoverOptions['onUnusable'],
  put: (bytes: Uint8Array) => Promise<boolean>,
): Promise<number> {
  let count = 0;
  for await (const { key } of objects.list(prefix)) {
    if (!key.endsWith(`/${name}`)) continue;
    try {
      const document = await getIfExists(objects, key);
      if (document === null) continue; // deleted since it was listed
      if (await put(document)) count++;
    } catch (error) {
      if (!(error instanceof ZerofleetError) || error.code !== 'document_invalid') throw error;
      onUnusable(key, error);
    }
  }
  return count;
}
