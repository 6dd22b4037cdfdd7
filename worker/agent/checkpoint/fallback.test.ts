/** Tests of a damaged checkpoint and of the saves after the fallback, with the process dying at every call. */
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { ulid } from 'ulid';
import { ZerofleetError } from '../../../contracts/index.js';
import { openObjectStore } from '../../../platform/object-store/index.js';
import { startTestRedis } from '../../../platform/testing/redis.js';
import { openJobStore } from '../../../state/index.js';
import { testDataset } from '../../../state/testing/jobs.js';
import { claimForTest } from '../../testing/attempt-context.js';
import { Crash, crashingObjects } from '../../testing/crashing.js';
import { end, newest, type Stores, spec, trainAndSave } from '../../testing/saving-process.js';
import { describeError } from '../attempt/failure.js';
import { JobCheckpoints } from '../attempt/job-checkpoints.js';

const redis = await startTestRedis();
const store = await openJobStore({ url: redis.url });
const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
const stores: Stores = { store, objects };
t.teardown(async () => {
  await objects.close();
  await store.close();
  await redis.stop();
});
await store.putDataset({ ...testDataset(), id: spec.data.dataset ?? '' });

/** Creates a job that keeps one checkpoint and has two: a pinned one at step 3, and a damaged one at step 9. */
async function damagedJob(): Promise<string> {
  const jobId = `job_${ulid()}`;
  await store.createJob({ id: jobId, spec });
  await trainAndSave(stores, jobId, 2);
  const [pinned] = (await store.listCheckpoints(jobId)).data;
  await store.pinCheckpoint(`${pinned?.id}`, true);
  await trainAndSave(stores, jobId, 2, 2);
  const attempt = await claimForTest({ ...stores, job_id: jobId });
  const checkpoints = new JobCheckpoints(attempt.ctx, 0);
  const damaged = await checkpoints.newest();
  if (damaged?.manifest.step !== 9) throw new Error(`the newest is at step ${damaged?.manifest.step}`);
  await checkpoints.reject(damaged, describeError(new ZerofleetError('shard_corrupt', 'chunk 3')));
  await attempt.close();
  return jobId;
}

t.test('after a fallback the new checkpoint is kept and the damaged one is removed', async (t) => {
  const jobId = await damagedJob();
  const steps = async () =>
    (await store.listCheckpoints(jobId)).data.map(({ step, damaged }) =>
      damaged ? `${step} damaged` : step,
    );
  t.strictSame(await steps(), ['9 damaged', 3]);
  t.equal((await store.getJob(jobId))?.latest_checkpoint?.step, 3);
  t.equal(await trainAndSave(stores, jobId, 2), 6, 'another worker resumes from step 3');
  t.strictSame(await steps(), [6, 3]);
  t.equal((await store.getJob(jobId))?.latest_checkpoint?.step, 6);
});

t.test(
  'a damaged checkpoint stays excluded when the process dies before any call after a fallback',
  async (t) => {
    for (let at = 1; ; at++) {
      const jobId = await damagedJob();
      const crash = new Crash(at, 'before');
      const dying = { objects: crashingObjects(objects, crash), store: crash.wrap(store, 'store') };
      await trainAndSave(dying, jobId, 2).catch(() => undefined);
      if (!crash.happened) break;
      const call = `call ${at}, ${crash.calls.at(-1)}`;
      const step = (await newest(stores, jobId))?.manifest.step;
      t.ok(step === 3 || step === 6, `${call}: resumes from step ${step}`);
      if (step === 3) await trainAndSave(stores, jobId, 2);
      t.strictSame(await end(stores, jobId), { files: 6, steps: [6, 3] }, call);
    }
  },
);
