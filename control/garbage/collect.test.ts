/** Tests of the objects that garbage collection removes, and above all of those that it never removes. */
import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { ulid } from 'ulid';
import { datasetKey, type Job } from '../../contracts/index.js';
import { checkpointDirectory, checkpointKey, desiredKey, specKey } from '../../formats/checkpoint/layout.js';
import { testModel } from '../../formats/testing/models.js';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/index.js';
import { keepsCreateOnly, PROBES } from '../../platform/object-store/probe.js';
import { startTestRedis, type TestRedis } from '../../platform/testing/redis.js';
import {
  type JobStore,
  openJobStore,
  putAccepted,
  putDatasetDocument,
  putModelDocument,
  putSpec,
} from '../../state/index.js';
import { executionAt, noteExecutions } from '../../state/testing/executions.js';
import { testDataset, testSpec } from '../../state/testing/jobs.js';
import { type Collected, type CollectOptions, collectGarbage } from './collect.js';

const dataset = testDataset();
const bytes = Buffer.from('bytes');

class Stores {
  constructor(
    readonly redis: TestRedis,
    readonly store: JobStore,
    readonly objects: ObjectStore,
    private readonly dir: string,
  ) {}

  static async open(t: { teardown(end: () => Promise<void>): void }): Promise<Stores> {
    const dir = await mkdtemp(join(tmpdir(), 'zf-garbage-'));
    const redis = await startTestRedis();
    const store = noteExecutions(await openJobStore({ url: redis.url }));
    const objects = await openObjectStore(pathToFileURL(dir).href);
    t.teardown(async () => {
      await store.close();
      await objects.close();
      await redis.stop();
      await rm(dir, { recursive: true, force: true });
    });
    const stores = new Stores(redis, store, objects, dir);
    await stores.put(datasetKey(dataset.id));
    await putDatasetDocument(objects, dataset);
    await store.putDataset(dataset);
    return stores;
  }

  async put(...keys: string[]): Promise<void> {
    for (const key of keys) await this.objects.put(key, bytes);
  }

  /** Writes an object of the same size as the others, modified an hour ago. */
  async putDated(key: string, content: string): Promise<void> {
    await this.objects.put(key, Buffer.from(content));
    const hourAgo = new Date(this.opened - 3_600_000);
    await utimes(join(this.dir, key), hourAgo, hourAgo);
  }

  async keys(): Promise<string[]> {
    const keys: string[] = [];
    for await (const { key } of this.objects.list('')) keys.push(key);
    return keys;
  }

  /** Creates an accepted job with a checkpoint and an export, both committed. */
  async job(): Promise<Job> {
    const id = `job_${ulid()}`;
    const spec = testSpec(dataset.id);
    await putSpec(this.objects, { job_id: id, spec, idempotency: null });
    const { job } = await this.store.createJob({ id, spec });
    await putAccepted(this.objects, job);
    const save = saveKey(id, 1, 10);
    await this.put(`${save}/shard-00000-of-00001.safetensors`, `${save}/MANIFEST.json`);
    const written = `jobs/${id}/exports/10-ckpt_1-safetensors-bf16`;
    await this.put(`${written}/model.safetensors`, `${written}/EXPORT.json`);
    return job;
  }

  async end(job: Job, state: 'failed' | 'cancelled' | 'succeeded'): Promise<void> {
    const { id } = job;
    if (state === 'cancelled') return void (await this.store.requestCancel(id));
    const claim = await this.store.claimAttempt(id, 1, 'w', 60_000);
    if (!claim.granted) throw new Error(claim.code);
    for (const to of ['starting', 'running'] as const) await this.store.transition(id, claim.execution, to);
    await this.store.finishJob(id, claim.execution, state);
  }

  /** Collects garbage, by default without a grace period. Returns the removed keys. */
  async collectGarbage(options: Partial<CollectOptions> = {}): Promise<string[]> {
    const before = await this.keys();
    this.last = await collectGarbage({ store: this.store, objects: this.objects, grace_ms: 0, ...options });
    const after = new Set(await this.keys());
    return before.filter((key) => !after.has(key));
  }

  last: Collected | null = null;
  private readonly opened = Date.now();
}

const saveKey = (id: string, epoch: number, step = 20) =>
  checkpointKey(id, checkpointDirectory({ step, execution: `${epoch}-a`, nonce: 'abcd' }));

t.test('uploads whose server died are removed, complete ones stay', async (t) => {
  const stores = await Stores.open(t);
  const model = testModel(`mdl_${ulid()}`);
  await stores.put(`models/${model.id}/model.safetensors`);
  await putModelDocument(stores.objects, model);
  await stores.store.putModel(model);
  const dead = [`datasets/ds_${ulid()}/text`, `models/mdl_${ulid()}/zero/a/fp32.pt`];
  await stores.put(...dead, 'elsewhere/of-another-app');
  t.same(await stores.collectGarbage({ grace_ms: 3_600_000 }), [], 'an upload that may be in progress stays');
  const reported: unknown[] = [];
  t.same(await stores.collectGarbage({ dry_run: true, onFound: (found) => reported.push(found) }), []);
  t.match(stores.last, { leftovers: 2, objects: 2, bytes: 10 });
  t.match(reported, [
    { kind: 'dataset upload', key: dead[0]?.replace('/text', ''), objects: 1, bytes: 5 },
    { kind: 'model upload' },
  ]);
  t.same(await stores.collectGarbage(), dead);
  t.match(stores.last, { skipped: null, leftovers: 2, objects: 2, bytes: 10 });
  t.same(await stores.collectGarbage(), []);
});

t.test('a probe of the store whose server died is removed', async (t) => {
  const stores = await Stores.open(t);
  const { objects } = stores;
  const dying = Object.assign(Object.create(objects), {
    delete: () => Promise.reject(new Error('the process died')),
  });
  t.equal(await keepsCreateOnly(dying), true);
  const probe = (await stores.keys()).find((key) => key.startsWith(PROBES));
  t.ok(probe);
  t.same(await stores.collectGarbage({ grace_ms: 3_600_000 }), [], 'a probe that may be in progress stays');
  t.same(await stores.collectGarbage(), [probe]);
});

t.test('a record or a document alone keeps its folder', async (t) => {
  const stores = await Stores.open(t);
  const old = testDataset();
  await stores.put(datasetKey(old.id));
  await stores.store.putDataset(old);
  const unrecorded = testDataset();
  await stores.put(datasetKey(unrecorded.id));
  await putDatasetDocument(stores.objects, unrecorded);
  t.same(await stores.collectGarbage(), []);
});

for (const state of ['failed', 'cancelled', 'succeeded'] as const) {
  t.test(`uncommitted objects of a job that ${state} are removed`, async (t) => {
    const stores = await Stores.open(t);
    const job = await stores.job();
    await stores.end(job, state);
    const half = `jobs/${job.id}/exports/20-ckpt_2-safetensors-bf16/config.json`;
    const last = `jobs/${job.id}/exports/100/config.json`;
    const shard = `${saveKey(job.id, 1)}/shard-00000-of-00002.safetensors`;
    await stores.put(half, last, shard);
    const gone = state === 'succeeded' ? [shard, half] : [shard, last, half];
    t.same(await stores.collectGarbage(), gone.sort());
  });
}

t.test('of an active job, only saves of ended epochs are removed', async (t) => {
  const stores = await Stores.open(t);
  const job = await stores.job();
  await stores.store.claimAttempt(job.id, 1, 'w', 60_000);
  await stores.store.claimAttempt(job.id, 1, 'w', 60_000);
  const [old, current] = [1, 2].map((epoch) => `${saveKey(job.id, epoch)}/shard-00000-of-00001.safetensors`);
  const last = `jobs/${job.id}/exports/100/config.json`;
  await stores.put(String(old), String(current), last);
  t.same(await stores.collectGarbage(), [old], 'a save of the current epoch may be in progress');
  await stores.store.releaseAttempt(job.id, executionAt(job.id, 2), { to: 'paused' });
  t.same(await stores.collectGarbage(), [current], 'no worker has the job');
});

t.test('a job whose creation was interrupted is removed, one with an unreadable spec is not', async (t) => {
  const stores = await Stores.open(t);
  const spec = testSpec(dataset.id);
  const [cut, unreadable] = [`job_${ulid()}`, `job_${ulid()}`];
  await putSpec(stores.objects, { job_id: cut, spec, idempotency: null });
  await stores.put(specKey(unreadable));
  t.same(await stores.collectGarbage(), [specKey(cut)]);
});

t.test('an empty job store removes nothing', async (t) => {
  const stores = await Stores.open(t);
  const job = await stores.job();
  await stores.put(`datasets/ds_${ulid()}/text`, `${saveKey(job.id, 1)}/shard-00000-of-00001.safetensors`);
  await stores.redis.forget();
  t.same(await stores.collectGarbage(), []);
  t.equal(stores.last?.skipped, 'empty');
  await stores.store.beginRestore();
  await stores.store.putDataset(dataset);
  t.same(await stores.collectGarbage(), []);
  t.equal(stores.last?.skipped, 'restoring', 'nor does one that is being rebuilt');
});

t.test('committed objects survive an unnoticed loss of the records', async (t) => {
  const stores = await Stores.open(t);
  const job = await stores.job();
  const shard = `${saveKey(job.id, 1)}/shard-00000-of-00001.safetensors`;
  await stores.put(shard, `jobs/${job.id}/exports/100/config.json`);
  await stores.redis.forget();
  await stores.store.putDataset(testDataset());
  t.same(await stores.collectGarbage(), [], 'earlier jobs are unknown, but they were accepted');
  t.equal(stores.last?.skipped, null);
});

t.test('a loss during a collection stops the removal', async (t) => {
  const stores = await Stores.open(t);
  await stores.put(`datasets/ds_${ulid()}/text`);
  const store = {
    ...stores.store,
    async getDataset(id: string) {
      await stores.redis.forget();
      return stores.store.getDataset(id);
    },
  };
  t.same(await stores.collectGarbage({ store }), []);
});

t.test('folders that were written, recorded or finished since the listing are not removed', async (t) => {
  const stores = await Stores.open(t);
  const job = await stores.job();
  const created = `job_${ulid()}`;
  const spec = testSpec(dataset.id);
  await putSpec(stores.objects, { job_id: created, spec, idempotency: null });
  const uploaded = testDataset();
  await stores.put(datasetKey(uploaded.id));
  const half = `jobs/${job.id}/exports/20-ckpt_2-safetensors-bf16/config.json`;
  await stores.putDated(half, 'begun');
  let recorded = 0;
  const store = {
    ...stores.store,
    async getDataset(id: string) {
      const found = await stores.store.getDataset(id);
      if (id === uploaded.id && recorded++ === 0) await stores.store.putDataset(uploaded);
      return found;
    },
    async getJob(id: string) {
      const found = await stores.store.getJob(id);
      // The job is created after garbage collection has read its answer.
      if (id === created && !found) await stores.store.createJob({ id, spec });
      return found;
    },
  };
  const list = async function* (prefix: string) {
    // Between the two listings, with the same size and time.
    if (prefix === dirname(half)) await stores.putDated(half, 'again');
    yield* stores.objects.list(prefix);
  };
  const objects: ObjectStore = Object.create(stores.objects, { list: { value: list } });
  t.same(await stores.collectGarbage({ store, objects }), []);
  t.ok(await stores.objects.head(desiredKey(job.id)));
  t.equal(recorded, 2, 'it was checked again');
});

t.test('one of several servers collects in each interval', async (t) => {
  const { store } = await Stores.open(t);
  const turns = await Promise.all([1, 2, 3].map(() => store.takeCollectionTurn(60_000)));
  t.equal(turns.filter(Boolean).length, 1);
  t.notOk(await store.takeCollectionTurn(60_000));
});
