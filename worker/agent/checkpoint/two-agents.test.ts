/**
 * Tests of two agents that both hold a job: there is one lineage, and writes of the one without the lease are refused.
 */
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { checkpointsPrefix } from '../../../formats/checkpoint/layout.js';
import { type ObjectStore, openObjectStore } from '../../../platform/object-store/index.js';
import { startTestRedis } from '../../../platform/testing/redis.js';
import { type JobStore, openJobStore } from '../../../state/index.js';
import { testDataset } from '../../../state/testing/jobs.js';
import { claimForTest, type TestAttempt } from '../../testing/attempt-context.js';
import { fakeCore } from '../../testing/fake-core.js';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { control } from '../../testing/held-lease.js';
import { LocalWorld } from '../../testing/local-ranks.js';
import { testSpec } from '../../testing/start-message.js';
import { JobCheckpoints } from '../attempt/job-checkpoints.js';
import type { ResumePoint } from '../attempt/load/load-point.js';

const core = fakeCore();
const spec = testSpec({ steps: 100 });

interface Stores {
  store: JobStore;
  objects: ObjectStore;
}

async function setup(t: Test) {
  const redis = await startTestRedis();
  const store = await openJobStore({ url: redis.url });
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(async () => {
    await objects.close();
    await store.close();
    await redis.stop();
  });
  await store.putDataset({ ...testDataset(), id: spec.data.dataset ?? '' });
  const jobId = `job_${ulid()}`;
  await store.createJob({ id: jobId, spec });
  const keys = async () => {
    const all: string[] = [];
    for await (const { key } of objects.list(checkpointsPrefix(jobId))) all.push(key);
    return all;
  };
  return { redis, store, objects, job_id: jobId, keys };
}

/** Returns the stores of a worker that is stopped between the confirmation of its lease and the next write. */
function withoutConfirm(stores: Stores): Stores {
  return { ...stores, store: { ...stores.store, renewLease: async () => control } };
}

/** Agent that holds a job, with its ranks in this process. */
class Holder {
  private constructor(
    private readonly stores: Stores,
    private readonly attempt: TestAttempt,
    private readonly checkpoints: JobCheckpoints,
    private readonly world: LocalWorld,
    readonly resume: ResumePoint | null,
  ) {}

  /** Claims the job when the lease of its holder has expired. */
  static async take(stores: Stores, jobId: string, worker: string, worldSize: number): Promise<Holder> {
    const attempt = await Holder.claim({ ...stores, job_id: jobId, worker });
    const checkpoints = new JobCheckpoints(attempt.ctx, 0);
    const resume = await checkpoints.newest();
    const { execution } = attempt.ctx.lease;
    const world = await LocalWorld.start({
      core,
      spec,
      world_size: worldSize,
      job_id: jobId,
      execution,
      nonce: worker,
    });
    const directory = resume?.prefix ?? '';
    if (resume)
      await world.load(stores.objects, { kind: 'checkpoint', directory, restore: 'full', own: true });
    else await world.initialize();
    return new Holder(stores, attempt, checkpoints, world, resume);
  }

  private static async claim(options: Parameters<typeof claimForTest>[0]): Promise<TestAttempt> {
    for (;;) {
      try {
        return await claimForTest(options);
      } catch (error) {
        if ((error as Error).message !== 'lease_held') throw error;
      }
    }
  }

  /** Trains three steps and stores the shards; `commit` commits them. */
  async trainAndStore() {
    const { world } = this;
    await world.train(3);
    const save = await world.save(this.stores.objects);
    const by = {
      spec,
      connected: world.connected,
      world_size: save.shards.length,
      data_digest: 'sha256:0',
      tokens_digest: 'sha256:0',
    };
    return { step: save.step, commit: () => this.checkpoints.commit(save, by) };
  }

  /** Stops the renewals, as if the process were stopped; its lease expires at once. */
  async stop(store: JobStore): Promise<void> {
    await this.close();
    const { jobId, execution } = this.attempt.ctx.lease;
    await store.renewLease(jobId, execution, 1);
  }

  close(): Promise<void> {
    return this.attempt.close();
  }
}

t.test('a holder that resumes too late can commit nothing, and its saves are removed', async (t) => {
  const { redis: _, job_id, keys, ...stores } = await setup(t);
  const first = await Holder.take(stores, job_id, 'first', 2);
  await (await first.trainAndStore()).commit();
  const late = await first.trainAndStore();
  await first.stop(stores.store);
  const second = await Holder.take(stores, job_id, 'second', 3);
  t.equal(second.resume?.manifest.step, 3);
  await (await second.trainAndStore()).commit();
  await t.rejects(late.commit(), { code: 'stale_epoch' });
  await second.stop(stores.store);
  const steps = (await stores.store.listCheckpoints(job_id)).data.map(({ step, prefix }) => [
    step,
    prefix.split('-').at(-1),
  ]);
  t.strictSame(steps, [
    [6, 'second'],
    [3, 'first'],
  ]);
  t.strictSame(
    (await keys()).filter((key) => key.includes('000000006-1-')),
    [],
    'the next commit removed the objects of the former holder',
  );
});

t.test('a late manifest is outside the lineage for every later agent', async (t) => {
  const { redis: _, job_id, keys, ...stores } = await setup(t);
  const first = await Holder.take(withoutConfirm(stores), job_id, 'first', 2);
  await (await first.trainAndStore()).commit();
  await first.trainAndStore();
  await first.stop(stores.store);
  const second = await Holder.take(stores, job_id, 'second', 3);
  await (await second.trainAndStore()).commit();
  const late = await first.trainAndStore();
  t.equal(late.step, 9, 'further than the current holder');
  await t.rejects(late.commit(), { code: 'stale_epoch' });
  const manifests = async () => (await keys()).filter((key) => key.endsWith('MANIFEST.json')).length;
  t.equal(await manifests(), 3, 'the object store could not refuse it');
  await second.stop(stores.store);
  const third = await Holder.take(stores, job_id, 'third', 1);
  t.equal(third.resume?.manifest.step, 6);
  t.equal(third.resume?.manifest.state_digest, fakeStateDigest(1, 6));
  const { data } = await stores.store.listCheckpoints(job_id);
  t.equal(third.resume?.manifest.parent, data.find(({ step }) => step === 3)?.id, 'one lineage');
  t.equal(await manifests(), 2);
  t.strictSame(
    data.map(({ step }) => step),
    [6, 3],
  );
  await third.stop(stores.store);
});

t.test('the manifest of an agent that died before recording it belongs to the lineage', async (t) => {
  const { redis: _, job_id, ...stores } = await setup(t);
  const failing = {
    ...stores,
    store: {
      ...stores.store,
      commitCheckpoint: () => Promise.reject(Object.assign(new Error('dead'), { code: 'dead' })),
    },
  };
  const first = await Holder.take(failing, job_id, 'first', 2);
  await t.rejects((await first.trainAndStore()).commit(), { code: 'dead' });
  await first.stop(stores.store);
  const second = await Holder.take(stores, job_id, 'second', 3);
  t.equal(second.resume?.manifest.step, 3);
  t.equal((await stores.store.getJob(job_id))?.latest_checkpoint?.id, second.resume?.checkpoint.id);
  await second.stop(stores.store);
});

t.test(
  "two holders of one epoch do not remove each other's saves, and one of them has the lineage",
  async (t) => {
    const { redis, job_id, keys, ...stores } = await setup(t);
    const saves = async () => {
      const files = (await keys()).map((key) => key.slice(checkpointsPrefix(job_id).length).split('/'));
      const committed = files.filter(([, file]) => file === 'MANIFEST.json').map(([name]) => name);
      return [...new Set(files.map(([name]) => name))]
        .map(
          (name) => `${name?.replace(/-[0-9a-f]{12}-/, ' ')}${committed.includes(name) ? '' : ' unfinished'}`,
        )
        .sort();
    };
    const failOver = await redis.leaveReplicaBehind();
    const first = await Holder.take(withoutConfirm(stores), job_id, 'first', 2);
    await (await first.trainAndStore()).commit();
    await first.trainAndStore();
    await failOver();
    const second = await Holder.take(stores, job_id, 'second', 3);
    t.equal(second.resume?.manifest.step, 3, 'a checkpoint that the server lost is not lost');
    await (await second.trainAndStore()).commit();
    await t.rejects((await first.trainAndStore()).commit(), { code: 'stale_epoch' });
    const left = [
      '000000003-1 first',
      '000000006-1 first unfinished',
      '000000006-1 second',
      '000000009-1 first',
    ];
    t.strictSame(await saves(), left);
    await second.stop(stores.store);
    const third = await Holder.take(stores, job_id, 'third', 1);
    t.equal(third.resume?.manifest.step, 6);
    t.strictSame(await saves(), ['000000003-1 first', '000000006-1 second']);
    await first.close();
    await third.stop(stores.store);
  },
);
