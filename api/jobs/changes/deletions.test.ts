/** Interrupted deletions of checkpoints, and deletions beside one that cannot be completed. */
import t, { type Test } from 'tap';
import type { Checkpoint } from '../../../contracts/index.js';
import { recover } from '../../../control/recovery/recover.js';
import { putTestCheckpoint } from '../../../formats/testing/checkpoints.js';
import { createLogger } from '../../../platform/logging/logging.js';
import { type ObjectStore, ObjectStoreError } from '../../../platform/object-store/index.js';
import { startTestStack, type TestStack } from '../../testing/stack.js';
import { checkpointOf, claimAndTrain } from '../../testing/training.js';
import { finishDeletions } from './deletions.js';

const log = createLogger({ level: 'silent', name: 'test' });

/** A stack whose deletion of objects fails if `fails` returns true. */
async function brokenStack(t: Test, fails: (keys: readonly string[]) => boolean): Promise<TestStack> {
  const wrap = ({ objects }: { objects: ObjectStore }) => {
    const remove: ObjectStore['delete'] = async (keys) => {
      if (fails(keys)) throw new ObjectStoreError('object_store_unavailable', 'the disk is unavailable');
      return objects.delete(keys);
    };
    return { objects: Object.assign(Object.create(objects) as ObjectStore, { delete: remove }) };
  };
  const stack = await startTestStack({ wrap });
  t.teardown(() => stack.close());
  return stack;
}

/** The only checkpoint of a failed job. */
async function checkpointOfFailed({ store, objects, createJob }: TestStack): Promise<Checkpoint> {
  const job = await createJob();
  const execution = await claimAndTrain(store, job.id, { steps: 1 });
  const checkpoint = checkpointOf(job.id, 2);
  await store.commitCheckpoint(job.id, execution, checkpoint);
  await putTestCheckpoint(objects, checkpoint.prefix, { numels: [10], ranks: 2 }, checkpoint.id);
  await store.finishJob(job.id, execution, 'failed');
  return checkpoint;
}

const remove = async ({ request }: TestStack, { id }: Checkpoint) =>
  (await request({ method: 'DELETE', url: `/v1/checkpoints/${id}` })).statusCode;

async function filesOf({ objects }: TestStack, { prefix }: Checkpoint): Promise<number> {
  let files = 0;
  for await (const _ of objects.list(`${prefix}/`)) files += 1;
  return files;
}

async function finishAll(stack: TestStack, done: () => Promise<boolean>): Promise<void> {
  const server = finishDeletions({ ...stack, log }, 1);
  while (!(await done())) await new Promise((next) => setImmediate(next));
  await server.close();
}

t.test('an interrupted deletion is completed by a server or by the same request', async (t) => {
  for (const calls of [1, 2]) {
    for (const by of ['server', 'request'] as const) {
      let left = Number.POSITIVE_INFINITY;
      const stack = await brokenStack(t, () => --left < 0);
      const checkpoint = await checkpointOfFailed(stack);
      left = calls - 1;
      t.equal(await remove(stack, checkpoint), 503);
      left = Number.POSITIVE_INFINITY;
      t.ok((await filesOf(stack, checkpoint)) > 0, `${calls}: files are left`);
      if (by === 'request') t.equal(await remove(stack, checkpoint), 204);
      else await finishAll(stack, async () => (await stack.store.listDeletedCheckpoints()).length === 0);
      t.equal(await filesOf(stack, checkpoint), 0, `${calls}, ${by}`);
      t.strictSame(await stack.store.listDeletedCheckpoints(), []);
      t.equal(await remove(stack, checkpoint), 404);
      await stack.redis.forget();
      const found = await recover({ ...stack, onUnusable: (key, error) => t.fail(key, { error }) });
      t.equal(found.checkpoints, 0);
    }
  }
});

t.test('a request does not complete deletions of another project', async (t) => {
  let fails = true;
  const stack = await brokenStack(t, () => fails);
  const checkpoint = await checkpointOfFailed(stack);
  t.equal(await remove(stack, checkpoint), 503);
  fails = false;
  const headers = await stack.headersIn('other');
  const reply = await stack.request({ method: 'DELETE', url: `/v1/checkpoints/${checkpoint.id}`, headers });
  t.equal(reply.statusCode, 404);
  t.ok((await filesOf(stack, checkpoint)) > 0);
});

t.test('a deletion that cannot be completed does not block others', async (t) => {
  let stuck = 'jobs/';
  const stack = await brokenStack(t, (keys) => keys.some((key) => key.startsWith(stuck)));
  const deleted: string[] = [];
  for (let n = 0; n < 4; n += 1) {
    const { id, job_id } = await checkpointOfFailed(stack);
    const url = n < 2 ? `checkpoints/${id}` : `jobs/${job_id}?artifacts=true`;
    t.equal((await stack.request({ method: 'DELETE', url: `/v1/${url}` })).statusCode, 503);
    deleted.push(job_id);
  }
  const { store } = stack;
  const left = async () => [
    ...(await store.listDeletedCheckpoints()).map(({ job_id }) => job_id),
    ...(await store.listDeletedJobs()).map(({ id }) => id),
  ];
  // The first of the list: the following ones must be completed anyway.
  const [first] = await left();
  stuck = `jobs/${first}/`;
  await finishAll(stack, async () => (await left()).length === 1);
  t.strictSame(await left(), [first]);
  t.ok(deleted.includes(`${first}`));
});
