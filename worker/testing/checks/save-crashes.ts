/** Cases in which a saving process dies at one of its calls, each with a job of its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Test } from 'tap';
import { ulid } from 'ulid';
import { nodeFileSystem } from '../../../platform/object-store/file/file-system.js';
import { FileStore } from '../../../platform/object-store/file/store.js';
import { startTestRedis } from '../../../platform/testing/redis.js';
import { type JobStore, openJobStore } from '../../../state/index.js';
import { testDataset } from '../../../state/testing/jobs.js';
import { Crash, type CrashMoment, crashingFileSystem, crashingObjects } from '../crashing.js';
import { checkRecovery, type Stores, spec, trainAndSave } from '../saving-process.js';

/** Calls that are counted: a process may die at one of them. */
type Layer = 'stores' | 'file system' | 'changes of the file system';

interface CrashCase {
  layer: Layer;
  /** Number of the fatal call. */
  at: number;
  moment: CrashMoment;
  /** Saves before the process that dies. */
  before: number;
  saves: number;
}

const READS = /^(fs\.(readdir|realpath|stat)|file\.(stat|read|close))\b/;

/**
 * Returns whether a call changes the file system unlike the call before it. A process that dies at another call leaves
 * the same files as one that dies at the next change.
 */
const isChange = (name: string, previous: string | undefined) =>
  !READS.test(name) && !(name === 'file.write' && previous === name);

export class SaveCrashes {
  private constructor(
    private readonly store: JobStore,
    private readonly root: string,
  ) {}

  /** Starts a job store that ends with the test. */
  static async start(t: Test): Promise<SaveCrashes> {
    const redis = await startTestRedis();
    const store = await openJobStore({ url: redis.url });
    const root = await mkdtemp(join(t.testdir(), 'saves-'));
    t.teardown(async () => {
      await store.close();
      await redis.stop();
      await rm(root, { recursive: true, force: true });
    });
    await store.putDataset({ ...testDataset(), id: spec.data.dataset ?? '' });
    return new SaveCrashes(store, root);
  }

  /** Checks the recovery after a death at each call of one save, and that both outcomes occur. */
  async checkEach(t: Test, layer: Layer, moment: CrashMoment): Promise<void> {
    const seen = new Set<number>();
    let at = 1;
    for (; ; at++) {
      const { healthy, crash, job_id } = await this.run({ layer, at, moment, before: 1, saves: 1 });
      if (!crash.happened) break;
      const call = `${moment} call ${at}, ${crash.calls.at(-1)}`;
      const step = await checkRecovery(t, healthy, { job_id, call });
      if (step !== null) seen.add(step);
    }
    t.ok(at > 10, `${at - 1} calls`);
    t.strictSame(seen, new Set([3, 6]), 'both outcomes occurred');
  }

  /** Runs a process that dies at a call. */
  async run({ layer, at, moment, before, saves }: CrashCase) {
    const { store } = this;
    const directory = await mkdtemp(join(this.root, 'objects-'));
    const jobId = `job_${ulid()}`;
    const healthy = { store, objects: await FileStore.open(directory) };
    await store.createJob({ id: jobId, spec });
    if (before > 0) await trainAndSave(healthy, jobId, 2, before);
    const crash = new Crash(at, moment, layer === 'changes of the file system' ? isChange : undefined);
    // No process receives the reports of the dying one.
    await this.dying(layer, directory, crash)
      .then((stores) => trainAndSave(stores, jobId, 2, saves))
      .catch(() => undefined);
    return { healthy, crash, job_id: jobId };
  }

  private async dying(layer: Layer, directory: string, crash: Crash): Promise<Stores> {
    const { store } = this;
    if (layer !== 'stores') {
      const fileSystem = crashingFileSystem(nodeFileSystem, crash);
      return { objects: await FileStore.open(directory, { fileSystem }), store };
    }
    const objects = crashingObjects(await FileStore.open(directory), crash);
    return { objects, store: crash.wrap(store, 'store') };
  }
}
