/**
 * Process that trains and saves, for tests that let it die in between, and the checks afterwards. The previous or the
 * new checkpoint is complete, and the next save removes all leftovers.
 */
import type { Test } from 'tap';
import { checkpointsPrefix } from '../../formats/checkpoint/layout.js';
import { verifyShards } from '../../formats/checkpoint/verify.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import type { JobStore } from '../../state/index.js';
import { tokenRequest } from '../agent/attempt/data/prepare-data.js';
import { JobCheckpoints } from '../agent/attempt/job-checkpoints.js';
import { prepareTokens } from '../tasks/data/prepare-tokens.js';
import { claimForTest } from './attempt-context.js';
import { fakeCore } from './fake-core.js';
import { fakeStateDigest } from './fake-state.js';
import { LocalWorld } from './local-ranks.js';
import { testSpec } from './start-message.js';

const core = fakeCore();
/** Spec of every job here. */
export const spec = testSpec({ steps: 20, keep: { last: 1 } });
/** Steps of one process. */
const STEPS = 3;

export interface Stores {
  store: JobStore;
  objects: ObjectStore;
}

/**
 * Returns the digest of the tokens that an agent would prepare for a job. @param cacheDir directory of this call alone
 */
export async function tokensDigest(
  { store, objects }: Stores,
  jobId: string,
  cacheDir: string,
): Promise<string> {
  const job = await store.getJob(jobId);
  const dataset = job && (await store.getDataset(job.spec.data.dataset ?? ''));
  if (!dataset) throw new Error(`job ${jobId} or its dataset is gone`);
  const request = {
    ...tokenRequest(job.spec, dataset),
    cache_dir: cacheDir,
    cache_bytes: 1e9,
    num_threads: 1,
    attempt: jobId,
  };
  return (await prepareTokens(objects, request)).tokens_digest;
}

/**
 * Runs one process: resumes from the newest checkpoint on `world_size` ranks, then trains three steps and saves,
 * `saves` times.
 * @param tokensDigest digest of the prepared tokens, if an agent resumes from the checkpoints
 * @returns the last step
 */
export async function trainAndSave(
  { store, objects }: Stores,
  jobId: string,
  worldSize: number,
  saves = 1,
  tokensDigest = 'sha256:0',
): Promise<number> {
  const attempt = await claimForTest({ store, objects, job_id: jobId });
  try {
    const checkpoints = new JobCheckpoints(attempt.ctx, 0);
    const resume = await checkpoints.newest();
    const { execution } = attempt.ctx.lease;
    const world = await LocalWorld.start({
      core,
      spec,
      world_size: worldSize,
      job_id: jobId,
      execution,
      nonce: 'n',
    });
    if (resume) {
      const directory = resume.prefix;
      const loaded = await world.load(objects, { kind: 'checkpoint', directory, restore: 'full', own: true });
      await checkpoints.verifyLoad({ source: { directory }, files: resume.manifest.shards }, loaded.ranges);
      if (loaded.digest !== fakeStateDigest(1, loaded.at.step)) throw new Error('another state was loaded');
    } else {
      await world.initialize();
    }
    const by = {
      spec,
      connected: world.connected,
      world_size: worldSize,
      data_digest: 'sha256:0',
      tokens_digest: tokensDigest,
    };
    for (let left = saves; ; left--) {
      await world.train(STEPS);
      const save = await world.save(objects);
      await checkpoints.commit(save, by);
      if (left === 1) return save.step;
    }
  } finally {
    await attempt.close();
  }
}

/** Ends a job whose last step is saved. @returns the number of files and the steps of its remaining checkpoints */
export async function end({ store, objects }: Stores, jobId: string) {
  const attempt = await claimForTest({ store, objects, job_id: jobId });
  try {
    const checkpoints = new JobCheckpoints(attempt.ctx, 0);
    await checkpoints.newest();
    await checkpoints.retain(attempt.ctx.deps.timing.storage);
  } finally {
    await attempt.close();
  }
  const { data } = await store.listCheckpoints(jobId);
  return { files: (await filesOf(objects, jobId)).length, steps: data.map(({ step }) => step) };
}

async function filesOf(objects: ObjectStore, jobId: string): Promise<string[]> {
  const files: string[] = [];
  for await (const { key } of objects.list(checkpointsPrefix(jobId))) files.push(key);
  return files;
}

/** Returns the newest checkpoint for a later agent. */
export async function newest({ store, objects }: Stores, jobId: string) {
  const attempt = await claimForTest({ store, objects, job_id: jobId });
  try {
    return await new JobCheckpoints(attempt.ctx, 0).newest();
  } finally {
    await attempt.close();
  }
}

/**
 * Checks the leftovers of a second process that died on two ranks, and that a third process resumes from there.
 * @param call call at which the process died
 * @returns the step of the newest checkpoint; null when there is none
 */
export async function checkRecovery(
  t: Test,
  healthy: Stores,
  { job_id, call }: { job_id: string; call: string },
): Promise<number | null> {
  const { store } = healthy;
  const found = await newest(healthy, job_id);
  if (!found) {
    t.fail(`${call}: no checkpoint is left`);
    return null;
  }
  const { manifest, prefix, checkpoint } = found;
  await verifyShards(healthy.objects, prefix, manifest);
  const job = await store.getJob(job_id);
  const world = await LocalWorld.start({ core, spec, world_size: 3 });
  const source = { kind: 'checkpoint', directory: prefix, restore: 'full', own: true } as const;
  const { digest } = await world.load(healthy.objects, source);
  const next = await trainAndSave(healthy, job_id, 3);
  const left = await filesOf(healthy.objects, job_id);
  const known = await store.listCheckpoints(job_id);
  t.strictSame(
    {
      step: [STEPS, 2 * STEPS].includes(manifest.step),
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
      next: manifest.step + STEPS,
      // Three shards and the manifest of the remaining checkpoint.
      files: 4,
      known: [next],
    },
    call,
  );
  return manifest.step;
}
