/** What the sweep removes, and above all what it never does. */
import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { ulid } from 'ulid';
import { datasetKey, type Job } from '../../contracts/index.js';
import { checkpointDirectory, checkpointKey, desiredKey, specKey } from '../../platform/checkpoint/layout.js';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/index.js';
import { testModel } from '../../platform/testing/models.js';
import { startTestRedis, type TestRedis } from '../../platform/testing/redis.js';
import { type JobStorePort, openJobStore } from '../../state/index.js';
import { executionAt, noteExecutions } from '../../state/testing/executions.js';
import { testDataset, testSpec } from '../../state/testing/jobs.js';
import { putAccepted, putDatasetDocument, putModelDocument, putSpec } from '../recovery/documents.js';
import { type SweepOptions, type Swept, sweep } from './sweep.js';

const dataset = testDataset();
const bytes = Buffer.from('bytes');

class Place {
  constructor(
    readonly redis: TestRedis,
    readonly store: JobStorePort,
    readonly objects: ObjectStore,
    private readonly dir: string,
  ) {}

  static async open(t: { teardown(end: () => Promise<void>): void }): Promise<Place> {
    const dir = await mkdtemp(join(tmpdir(), 'zf-sweep-'));
    const redis = await startTestRedis();
    const store = noteExecutions(await openJobStore({ url: redis.url }));
    const objects = await openObjectStore(pathToFileURL(dir).href);
    t.teardown(async () => {
      await store.close();
      await objects.close();
      await redis.stop();
      await rm(dir, { recursive: true, force: true });
    });
    const place = new Place(redis, store, objects, dir);
    await place.put(datasetKey(dataset.id));
    await putDatasetDocument(objects, dataset);
    await store.putDataset(dataset);
    return place;
  }

  async put(...keys: string[]): Promise<void> {
    for (const key of keys) await this.objects.put(key, bytes);
  }

  /** Writes an object, as many bytes as the others have, that has the time of an hour ago. */
  async putDated(key: string, content: string): Promise<void> {
    await this.objects.put(key, Buffer.from(content));
    const hour_ago = new Date(this.opened - 3_600_000);
    await utimes(join(this.dir, key), hour_ago, hour_ago);
  }

  async keys(): Promise<string[]> {
    const keys: string[] = [];
    for await (const { key } of this.objects.list('')) keys.push(key);
    return keys;
  }

  /** A job that was accepted; with a checkpoint and an export, both committed. */
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

  /** With no grace unless said otherwise. Returns the keys that it removed. */
  async sweep(options: Partial<SweepOptions> = {}): Promise<string[]> {
    const before = await this.keys();
    this.last = await sweep({ store: this.store, objects: this.objects, grace_ms: 0, ...options });
    const after = new Set(await this.keys());
    return before.filter((key) => !after.has(key));
  }

  last: Swept | null = null;
  private readonly opened = Date.now();
}

const saveKey = (id: string, epoch: number, step = 20) =>
  checkpointKey(id, checkpointDirectory({ step, execution: `${epoch}-a`, nonce: 'abcd' }));

t.test('uploads that ended with their server are removed, whole ones stay', async (t) => {
  const place = await Place.open(t);
  const model = testModel(`mdl_${ulid()}`);
  await place.put(`models/${model.id}/model.safetensors`);
  await putModelDocument(place.objects, model);
  await place.store.putModel(model);
  const dead = [`datasets/ds_${ulid()}/text`, `models/mdl_${ulid()}/zero/a/fp32.pt`];
  await place.put(...dead, 'elsewhere/of-somebody-else');
  t.same(await place.sweep({ grace_ms: 3_600_000 }), [], 'an upload that may be under way is left alone');
  const told: unknown[] = [];
  t.same(await place.sweep({ dry_run: true, onFound: (found) => told.push(found) }), []);
  t.match(place.last, { leftovers: 2, objects: 2, bytes: 10 });
  t.match(told, [
    { what: 'dataset upload', key: dead[0]?.replace('/text', ''), objects: 1, bytes: 5 },
    { what: 'model upload' },
  ]);
  t.same(await place.sweep(), dead);
  t.match(place.last, { skipped: null, leftovers: 2, objects: 2, bytes: 10 });
  t.same(await place.sweep(), []);
});

t.test('a record alone keeps what belongs to it, as a document alone does', async (t) => {
  const place = await Place.open(t);
  const old = testDataset();
  await place.put(datasetKey(old.id));
  await place.store.putDataset(old);
  const unrecorded = testDataset();
  await place.put(datasetKey(unrecorded.id));
  await putDatasetDocument(place.objects, unrecorded);
  t.same(await place.sweep(), []);
});

for (const state of ['failed', 'cancelled', 'succeeded'] as const) {
  t.test(`of a job that ${state}, what never became anything is removed`, async (t) => {
    const place = await Place.open(t);
    const job = await place.job();
    await place.end(job, state);
    const half = `jobs/${job.id}/exports/20-ckpt_2-safetensors-bf16/config.json`;
    const last = `jobs/${job.id}/exports/100/config.json`;
    const shard = `${saveKey(job.id, 1)}/shard-00000-of-00002.safetensors`;
    await place.put(half, last, shard);
    const gone = state === 'succeeded' ? [shard, half] : [shard, last, half];
    t.same(await place.sweep(), gone.sort());
  });
}

t.test('of a job that has not ended, only saves of epochs that have', async (t) => {
  const place = await Place.open(t);
  const job = await place.job();
  await place.store.claimAttempt(job.id, 1, 'w', 60_000);
  await place.store.claimAttempt(job.id, 1, 'w', 60_000);
  const [old, current] = [1, 2].map((epoch) => `${saveKey(job.id, epoch)}/shard-00000-of-00001.safetensors`);
  const last = `jobs/${job.id}/exports/100/config.json`;
  await place.put(String(old), String(current), last);
  t.same(await place.sweep(), [old], 'a save of the epoch that runs may be on its way');
  await place.store.releaseAttempt(job.id, executionAt(job.id, 2), { to: 'paused' });
  t.same(await place.sweep(), [current], 'nobody has the job');
});

t.test('a job whose creation was cut off is removed, one that nobody can judge is not', async (t) => {
  const place = await Place.open(t);
  const spec = testSpec(dataset.id);
  const [cut, unreadable] = [`job_${ulid()}`, `job_${ulid()}`];
  await putSpec(place.objects, { job_id: cut, spec, idempotency: null });
  await place.put(specKey(unreadable));
  t.same(await place.sweep(), [specKey(cut)]);
});

t.test('an empty job store removes nothing', async (t) => {
  const place = await Place.open(t);
  const job = await place.job();
  await place.put(`datasets/ds_${ulid()}/text`, `${saveKey(job.id, 1)}/shard-00000-of-00001.safetensors`);
  await place.redis.forget();
  t.same(await place.sweep(), []);
  t.equal(place.last?.skipped, 'empty');
  await place.store.beginRestore();
  await place.store.putDataset(dataset);
  t.same(await place.sweep(), []);
  t.equal(place.last?.skipped, 'restoring', 'nor does one that is being rebuilt');
});

t.test('what was committed outlives a loss of the records that nobody noticed', async (t) => {
  const place = await Place.open(t);
  const job = await place.job();
  const shard = `${saveKey(job.id, 1)}/shard-00000-of-00001.safetensors`;
  await place.put(shard, `jobs/${job.id}/exports/100/config.json`);
  await place.redis.forget();
  await place.store.putDataset(testDataset());
  t.same(await place.sweep(), [], 'the jobs of before are not known, but they were accepted');
  t.equal(place.last?.skipped, null);
});

t.test('a loss in the middle of a sweep ends the removing', async (t) => {
  const place = await Place.open(t);
  await place.put(`datasets/ds_${ulid()}/text`);
  const store = {
    ...place.store,
    async getDataset(id: string) {
      await place.redis.forget();
      return place.store.getDataset(id);
    },
  };
  t.same(await place.sweep({ store }), []);
});

t.test('what is written to, recorded or finished since it was listed is not removed', async (t) => {
  const place = await Place.open(t);
  const job = await place.job();
  const created = `job_${ulid()}`;
  const spec = testSpec(dataset.id);
  await putSpec(place.objects, { job_id: created, spec, idempotency: null });
  const uploaded = testDataset();
  await place.put(datasetKey(uploaded.id));
  const half = `jobs/${job.id}/exports/20-ckpt_2-safetensors-bf16/config.json`;
  await place.putDated(half, 'begun');
  let recorded = 0;
  const store = {
    ...place.store,
    async getDataset(id: string) {
      const found = await place.store.getDataset(id);
      if (id === uploaded.id && recorded++ === 0) await place.store.putDataset(uploaded);
      return found;
    },
    async getJob(id: string) {
      const found = await place.store.getJob(id);
      // The sweep has its answer; what it was about happens now.
      if (id === created && !found) await place.store.createJob({ id, spec });
      return found;
    },
  };
  const list = async function* (prefix: string) {
    // Between the two looks, with as many bytes and, by the clock, at the same time.
    if (prefix === dirname(half)) await place.putDated(half, 'again');
    yield* place.objects.list(prefix);
  };
  const objects: ObjectStore = Object.create(place.objects, { list: { value: list } });
  t.same(await place.sweep({ store, objects }), []);
  t.ok(await place.objects.head(desiredKey(job.id)));
  t.equal(recorded, 2, 'it looked again');
});

t.test('of several servers one sweeps in each interval', async (t) => {
  const { store } = await Place.open(t);
  const turns = await Promise.all([1, 2, 3].map(() => store.takeSweepTurn(60_000)));
  t.equal(turns.filter(Boolean).length, 1);
  t.notOk(await store.takeSweepTurn(60_000));
});
