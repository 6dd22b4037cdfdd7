/**
 * A save that dies at each of its calls, one after the other: what is loaded afterwards is the checkpoint before it or the new
 * one, whole, and the next save leaves nothing of the dead one.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { checkpointsPrefix } from '../../platform/checkpoint/layout.js';
import { verifyShards } from '../../platform/checkpoint/verify.js';
import { type JobStorePort, openJobStore } from '../../platform/job-store/index.js';
import { FileStore } from '../../platform/object-store/file-store.js';
import { nodeFileSystem } from '../../platform/object-store/file-system.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { testDataset } from '../../platform/testing/jobs.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { claimForTest } from '../testing/attempt-context.js';
import { Crash, type CrashMoment, crashingFileSystem, crashingObjects } from '../testing/crashing.js';
import { fakeCore } from '../testing/fake-core.js';
import { fakeStateDigest } from '../testing/fake-state.js';
import { LocalWorld } from '../testing/local-ranks.js';
import { testSpec } from '../testing/start-message.js';
import { JobCheckpoints } from './job-checkpoints.js';

const core = fakeCore({ step_ms: 0 });
const spec = testSpec({ steps: 20, keep_last: 1 });

const redis = await startTestRedis();
const store = await openJobStore({ url: redis.url });
const root = await mkdtemp(join(t.testdir(), 'saves-'));
t.teardown(async () => {
  await store.close();
  await redis.stop();
  await rm(root, { recursive: true, force: true });
});

await store.putDataset({ ...testDataset(), id: spec.data.dataset });

interface Stores {
  store: JobStorePort;
  objects: ObjectStore;
}

/** One life of a process: goes on from the newest checkpoint on `world_size` ranks, trains three steps and saves. */
async function live({ store, objects }: Stores, job_id: string, world_size: number): Promise<number> {
  const attempt = await claimForTest({ store, objects, job_id });
  try {
    const checkpoints = new JobCheckpoints(attempt.ctx, 0);
    const resume = await checkpoints.newest();
    const { epoch } = attempt.ctx.lease;
    const world = await LocalWorld.start({ core, spec, world_size, job_id, epoch, nonce: `n${epoch}` });
    if (resume) {
      const directory = resume.prefix;
      const loaded = await world.load(objects, { kind: 'checkpoint', directory, restore: 'full', own: true });
      await checkpoints.verifyLoad(
        {
          source: { kind: 'checkpoint', directory, restore: 'full', own: true },
          files: resume.manifest.shards,
        },
        loaded.ranges,
      );
      if (loaded.digest !== fakeStateDigest(1, loaded.at.step)) throw new Error('another state was loaded');
    } else {
      await world.initialize();
    }
    await world.train(3);
    const save = await world.save(objects);
    const by = { connected: world.connected, world_size, data_digest: 'sha256:0' };
    await checkpoints.commit(save, by);
    return save.step;
  } finally {
    await attempt.close();
  }
}

/** What somebody who comes later finds. */
async function newest({ store, objects }: Stores, job_id: string) {
  const attempt = await claimForTest({ store, objects, job_id });
  try {
    return await new JobCheckpoints(attempt.ctx, 0).newest();
  } finally {
    await attempt.close();
  }
}

/** A process whose calls are counted and which may die at one of them. */
type Process = (directory: string, crash: Crash) => Promise<Stores>;

const processes: Record<string, Process> = {
  'every call to the object store and to the job store': async (directory, crash) => ({
    objects: crashingObjects(await FileStore.open(directory), crash),
    store: crash.wrap(store, 'store'),
  }),
  'every call to the file system': async (directory, crash) => ({
    objects: await FileStore.open(directory, { fileSystem: crashingFileSystem(nodeFileSystem, crash) }),
    store,
  }),
};

for (const [what, start] of Object.entries(processes)) {
  for (const moment of ['before', 'after'] as const) {
    t.test(`dead ${moment} ${what}, a save is done or not done`, async (t) => {
      const seen = new Set<number>();
      let at = 1;
      for (; await survives(t, start, { at, moment, seen }); at++);
      t.ok(at > 10, `${at - 1} calls`);
      t.strictSame(seen, new Set([3, 6]), 'both outcomes were met');
    });
  }
}

interface Case {
  at: number;
  moment: CrashMoment;
  /** Steps of the checkpoints that were found after crashes. */
  seen: Set<number>;
}

/** False when the save came to its end before the fatal call. */
async function survives(t: Test, start: Process, { at, moment, seen }: Case): Promise<boolean> {
  const directory = await mkdtemp(join(root, 'objects-'));
  const job_id = `job_${ulid()}`;
  const healthy = { store, objects: await FileStore.open(directory) };
  await store.createJob({ id: job_id, spec });
  await live(healthy, job_id, 2);

  const crash = new Crash(at, moment);
  // Whatever the dying process reports is heard by nobody.
  await start(directory, crash)
    .then((stores) => live(stores, job_id, 2))
    .catch(() => undefined);
  if (!crash.happened) return false;

  const found = await newest(healthy, job_id);
  const call = `${moment} call ${at}, ${crash.calls.at(-1)}`;
  if (!found) return t.fail(`${call}: no checkpoint is left`);
  const { manifest, prefix, checkpoint } = found;
  seen.add(manifest.step);
  await verifyShards(healthy.objects, prefix, manifest);
  const job = await store.getJob(job_id);
  const world = await LocalWorld.start({ core, spec, world_size: 3 });
  const source = { kind: 'checkpoint', directory: prefix, restore: 'full', own: true } as const;
  const { digest } = await world.load(healthy.objects, source);
  const next = await live(healthy, job_id, 3);
  const left: string[] = [];
  for await (const { key } of healthy.objects.list(checkpointsPrefix(job_id))) left.push(key);
  const known = await store.listCheckpoints(job_id);
  t.strictSame(
    {
      step: [3, 6].includes(manifest.step),
      recorded: job?.latest_checkpoint?.id,
      digest,
      next,
      files: left.length,
      known: known.data.map(({ step }) => step),
    },
    {
      step: true,
      recorded: checkpoint.id,
      digest: fakeStateDigest(1, manifest.step),
      next: manifest.step + 3,
      // Three shards and a manifest of the one that is kept.
      files: 4,
      known: [next],
    },
    call,
  );
  return true;
}
