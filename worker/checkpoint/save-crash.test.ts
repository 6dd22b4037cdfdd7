/**
 * Tests of a save that dies at each of its calls: the next load finds the previous or the new checkpoint, complete, and the next save
 * removes all leftovers.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { nodeFileSystem } from '../../platform/object-store/file/file-system.js';
import { FileStore } from '../../platform/object-store/file/store.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { openJobStore } from '../../state/index.js';
import { testDataset } from '../../state/testing/jobs.js';
import { Crash, type CrashMoment, crashingFileSystem, crashingObjects } from '../testing/crashing.js';
import { checkRecovery, end, newest, type Stores, spec, trainAndSave } from '../testing/saving-process.js';

const redis = await startTestRedis();
const store = await openJobStore({ url: redis.url });
const root = await mkdtemp(join(t.testdir(), 'saves-'));
t.teardown(async () => {
  await store.close();
  await redis.stop();
  await rm(root, { recursive: true, force: true });
});

await store.putDataset({ ...testDataset(), id: spec.data.dataset });

/** Process whose calls are counted and that may die at one of them. */
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
    t.test(`killed ${moment} ${what}, a save is done or not done`, async (t) => {
      const seen = new Set<number>();
      let at = 1;
      for (; await survives(t, start, { at, moment, seen }); at++);
      t.ok(at > 10, `${at - 1} calls`);
      t.strictSame(seen, new Set([3, 6]), 'both outcomes occurred');
    });
  }
}

t.test(
  'killed before each call of two saves, the end leaves the checkpoints that retention keeps',
  async (t) => {
    const start = processes['every call to the object store and to the job store'] as Process;
    for (let at = 1; ; at++) {
      const { crash, healthy, job_id } = await runUntilCrash(start, {
        at,
        moment: 'before',
        before: 0,
        saves: 2,
      });
      if (!crash.happened) break;
      const call = `call ${at}, ${crash.calls.at(-1)}`;
      while ((await newest(healthy, job_id))?.manifest.step !== 6) await trainAndSave(healthy, job_id, 2);
      t.strictSame(await end(healthy, job_id), { files: 3, steps: [6] }, call);
    }
  },
);

interface Case {
  at: number;
  moment: CrashMoment;
  /** Steps of the checkpoints that were found after crashes. */
  seen: Set<number>;
}

interface CrashCase {
  at: number;
  moment: CrashMoment;
  /** Saves before the process that dies. */
  before: number;
  saves: number;
}

/** Runs a process that dies at a call. */
async function runUntilCrash(start: Process, { at, moment, before, saves }: CrashCase) {
  const directory = await mkdtemp(join(root, 'objects-'));
  const job_id = `job_${ulid()}`;
  const healthy = { store, objects: await FileStore.open(directory) };
  await store.createJob({ id: job_id, spec });
  if (before > 0) await trainAndSave(healthy, job_id, 2, before);

  const crash = new Crash(at, moment);
  // No process receives the reports of the dying one.
  await start(directory, crash)
    .then((stores) => trainAndSave(stores, job_id, 2, saves))
    .catch(() => undefined);
  return { healthy, crash, job_id };
}

/** Runs one case. Returns false when the save finished before the fatal call. */
async function survives(t: Test, start: Process, { at, moment, seen }: Case): Promise<boolean> {
  const { healthy, crash, job_id } = await runUntilCrash(start, { at, moment, before: 1, saves: 1 });
  if (!crash.happened) return false;
  const call = `${moment} call ${at}, ${crash.calls.at(-1)}`;
  const step = await checkRecovery(t, healthy, { job_id, call });
  if (step !== null) seen.add(step);
  return true;
}
