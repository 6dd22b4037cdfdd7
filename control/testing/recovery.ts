/** Stores for tests of `recover`, filled as the API and workers fill them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ulid } from 'ulid';
import { type Execution, epochOf } from '../../contracts/execution.js';
import type { Job, JobSpec } from '../../contracts/index.js';
import { checkpointOf } from '../../formats/checkpoint/checkpoint-of.js';
import { checkpointDirectory, checkpointKey, MANIFEST_FILE } from '../../formats/checkpoint/layout.js';
import { encodeManifest, type Manifest } from '../../formats/checkpoint/manifest.js';
import { testManifest } from '../../formats/testing/checkpoints.js';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/index.js';
import { startTestRedis, type TestRedis } from '../../platform/testing/redis.js';
import { type JobStore, openJobStore, putAccepted, putDatasetDocument, putSpec } from '../../state/index.js';
import { testDataset, testSpec } from '../../state/testing/jobs.js';
import { recover } from '../recovery/recover.js';

export const LEASE_MS = 60_000;
/** Dataset of every job here. */
export const dataset = testDataset();

interface Stores {
  redis: TestRedis;
  store: JobStore;
  objects: ObjectStore;
}

/** Opens a private Redis, and a folder as the object store. */
export async function stores(t: { teardown(end: () => Promise<void>): void }): Promise<Stores> {
  const dir = await mkdtemp(join(tmpdir(), 'zf-recover-'));
  const redis = await startTestRedis();
  const store = await openJobStore({ url: redis.url });
  const objects = await openObjectStore(pathToFileURL(dir).href);
  t.teardown(async () => {
    await store.close();
    await objects.close();
    await redis.stop();
    await rm(dir, { recursive: true, force: true });
  });
  await putDatasetDocument(objects, dataset);
  await store.putDataset(dataset);
  return { redis, store, objects };
}

/** Creates a job as the API does. */
export async function create({ store, objects }: Stores, changes: Partial<JobSpec> = {}): Promise<Job> {
  const id = `job_${ulid()}`;
  const spec = testSpec(dataset.id, changes);
  await putSpec(objects, { job_id: id, spec, idempotency: null });
  const { job } = await store.createJob({ id, spec });
  await putAccepted(objects, job);
  return job;
}

/** Saves a checkpoint as a worker does: a manifest, then the record. */
export async function checkpoint(
  { store, objects }: Pick<Stores, 'store' | 'objects'>,
  job: Job,
  execution: Execution,
  step: number,
  recorded = true,
  madeFrom: Manifest['made_from'] = null,
) {
  const prefix = checkpointKey(job.id, checkpointDirectory({ step, execution, nonce: 'abcd' }));
  const manifest = {
    ...testManifest({ numels: [4], ranks: 1 }),
    id: `ckpt_${ulid()}`,
    job_id: job.id,
    step,
    epoch: epochOf(execution),
    eval_losses: { validation: 2.5 },
    made_from: madeFrom,
  };
  await objects.put(`${prefix}/${MANIFEST_FILE}`, encodeManifest(manifest));
  const made = checkpointOf(manifest, prefix);
  if (recorded) await store.commitCheckpoint(job.id, execution, made);
  return made;
}

export async function loseAndRecover(s: Stores) {
  await s.redis.forget();
  return run(s);
}

export async function run({ store, objects }: Stores) {
  const unusable: string[] = [];
  const found = await recover({ store, objects, onUnusable: (key) => unusable.push(key) });
  return { found, unusable };
}

export async function jobOf({ store }: Stores, id: string): Promise<Job> {
  const job = await store.getJob(id);
  if (!job) throw new Error(`no job ${id}`);
  return job;
}
