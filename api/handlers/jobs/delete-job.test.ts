import t from 'tap';
import type { Job, Page, Problem } from '../../../contracts/index.js';
import { collectGarbage } from '../../../control/garbage/collect.js';
import { readDeleted } from '../../../control/recovery/deletion.js';
import { recover } from '../../../control/recovery/recover.js';
import { deletedKey, jobKey, MANIFEST_FILE, specKey } from '../../../formats/checkpoint/layout.js';
import { putTestCheckpoint } from '../../../formats/testing/checkpoints.js';
import { createLogger } from '../../../platform/logging/logging.js';
import { ObjectStoreError } from '../../../platform/object-store/index.js';
import { putResult } from '../../../state/index.js';
import { finishDeletions } from '../../jobs/changes/deletions.js';
import { startTestStack, type TestStack } from '../../testing/stack.js';
import { checkpointOf, claimAndTrain } from '../../testing/training.js';

const log = createLogger({ level: 'silent', name: 'test' });

/** A finished job with a checkpoint, an export of that checkpoint and a final export. */
async function endedJob({ store, objects, createJob }: TestStack): Promise<Job> {
  const job = await createJob({ labels: { team: 'a' } });
  const execution = await claimAndTrain(store, job.id, { steps: 1 });
  const second = checkpointOf(job.id, 2);
  await store.commitCheckpoint(job.id, execution, second);
  await putTestCheckpoint(objects, second.prefix, { numels: [10], ranks: 2 });
  for (const key of [`exports/2-${second.id}-safetensors-bf16/EXPORT.json`, 'exports/2/model.safetensors'])
    await objects.put(`${jobKey(job.id)}/${key}`, Buffer.from('{}'));
  await store.finishJob(job.id, execution, 'failed');
  await putResult(objects, {
    job_id: job.id,
    state: 'failed',
    reason: 'internal_error',
    epoch: 1,
    step: 2,
    total_steps: 10,
    state_digest: null,
    checkpoint: second.id,
    metrics: null,
    export: null,
    failure: null,
    finished_at: new Date().toISOString(),
  });
  return (await store.getJob(job.id)) ?? job;
}

async function keysOf({ objects }: Pick<TestStack, 'objects'>, { id }: Job): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of objects.list(`${jobKey(id)}/`)) keys.push(key.slice(jobKey(id).length + 1));
  return keys;
}

const remove = ({ request }: TestStack, { id }: Job, query = '') =>
  request({ method: 'DELETE', url: `/v1/jobs/${id}${query}` });

/** Every Redis key that contains the job's id, and its members in indexes. */
async function tracesOf(stack: TestStack, { id }: Job): Promise<string[]> {
  const { data } = (await stack.request({ url: '/v1/jobs?label=team%3Da&limit=100' })).json<Page<Job>>();
  const listed = (await stack.request({ url: '/v1/jobs?state=failed' })).json<Page<Job>>();
  return [...data, ...listed.data].filter((job) => job.id === id).map((job) => job.id);
}

t.test('a job is deleted with all its data', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const job = await endedJob(stack);
  const checkpoint = job.latest_checkpoint?.id ?? '';
  t.equal((await remove(stack, job, '?artifacts=true')).statusCode, 204);
  t.strictSame(await keysOf(stack, job), []);
  t.strictSame(await tracesOf(stack, job), []);
  for (const path of [`jobs/${job.id}`, `jobs/${job.id}/attempts`, `checkpoints/${checkpoint}`])
    t.equal((await stack.request({ url: `/v1/${path}` })).statusCode, 404, path);
  t.strictSame(await stack.store.readStream(job.id, null, 10), []);
  t.strictSame(await stack.store.listDeletedJobs(), []);
  t.equal((await remove(stack, job)).json<Problem>().code, 'job_not_found');
});

t.test('without artifacts its files stay, and recover does not bring it back', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const job = await endedJob(stack);
  const other = await stack.createJob();
  await stack.objects.put(
    `${jobKey(job.id)}/checkpoints/000000003-1-a-abcd/shard`,
    Buffer.from('unfinished'),
  );
  t.equal((await remove(stack, job)).statusCode, 204);
  const collected = await collectGarbage({ ...stack, grace_ms: 0 });
  t.match(collected, { leftovers: 1 }, 'except for a save that was never committed');
  const kept = await keysOf(stack, job);
  t.ok(kept.some((key) => key.endsWith(MANIFEST_FILE)));
  t.ok(kept.includes('exports/2/model.safetensors') && kept.includes('deleted.json'));
  t.notOk(kept.includes('spec.json') || kept.includes('result.json') || kept.includes('desired.json'));
  await stack.redis.forget();
  const found = await recover({ ...stack, onUnusable: (key, error) => t.fail(key, { error }) });
  t.match(found, { jobs: { queued: 1 }, unaccepted: 0 });
  t.equal(await stack.store.getJob(job.id), null);
  t.ok(await stack.store.getJob(other.id));
});

t.test('data in use elsewhere stays, and so does the job', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const running = await stack.createJob();
  t.equal((await remove(stack, running)).json<Problem>().code, 'invalid_state');
  const job = await endedJob(stack);
  const checkpoint = job.latest_checkpoint?.id ?? '';
  const before = await keysOf(stack, job);
  const fork = await stack.request({ method: 'POST', url: `/v1/jobs/${job.id}/fork`, payload: {} });
  t.equal(fork.statusCode, 201, fork.body);
  for (const query of ['', '?artifacts=true'])
    t.equal((await remove(stack, job, query)).json<Problem>().code, 'checkpoint_held');
  await stack.request({ method: 'POST', url: `/v1/jobs/${fork.json<Job>().id}/cancel` });
  await stack.store.pinCheckpoint(checkpoint, true);
  t.equal((await remove(stack, job, '?artifacts=true')).json<Problem>().code, 'checkpoint_pinned');
  t.strictSame(await keysOf(stack, job), before);
  t.equal((await remove(stack, job)).statusCode, 204, 'pinned files may stay');
});

t.test('a deletion interrupted anywhere is completed exactly once', async (t) => {
  let left = Number.POSITIVE_INFINITY;
  const broken = new ObjectStoreError('object_store_unavailable', 'the disk is unavailable');
  const stack = await startTestStack({
    wrap: ({ objects }) => ({
      // The remaining number of writes succeeds.
      objects: new Proxy(objects, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name);
          if (typeof value !== 'function') return value;
          if (name !== 'delete' && name !== 'put') return value.bind(target);
          return async (...args: unknown[]) => {
            left -= 1;
            if (left < 0) throw broken;
            return value.apply(target, args);
          };
        },
      }),
    }),
  });
  t.teardown(() => stack.close());
  for (let writes = 0; ; writes += 1) {
    const job = await endedJob(stack);
    left = writes;
    const reply = await remove(stack, job, '?artifacts=true');
    left = Number.POSITIVE_INFINITY;
    if (reply.statusCode === 204) {
      t.ok(writes > 5, `interrupted before each of ${writes} writes`);
      break;
    }
    t.equal(reply.statusCode, 503);
    t.equal(await stack.store.getJob(job.id), null, 'it is not found');
    t.same(
      await stack.store.listDeletedJobs(),
      [{ id: job.id, project: 'default', artifacts: true }],
      'and noted',
    );
    if (writes % 2 === 0) {
      t.equal((await remove(stack, job)).statusCode, 204, 'repeating the request completes it');
    } else {
      const servers = [1, 2].map(() => finishDeletions({ ...stack, log }, 10));
      while ((await stack.store.listDeletedJobs()).length > 0)
        await new Promise((done) => setImmediate(done));
      await Promise.all(servers.map((server) => server.close()));
    }
    t.strictSame(await keysOf(stack, job), [], `interrupted before write ${writes}`);
  }
});

t.test('a deletion interrupted by a loss of Redis is completed by garbage collection', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const job = await endedJob(stack);
  await stack.createJob();
  const text = { format_version: 1, job_id: job.id, artifacts: 'removed', at: new Date().toISOString() };
  await stack.objects.put(deletedKey(job.id), Buffer.from(JSON.stringify(text)));
  await stack.redis.forget();
  await recover({ ...stack, onUnusable: (key, error) => t.fail(key, { error }) });
  t.equal(await stack.store.getJob(job.id), null, 'it does not come back');
  t.ok(await stack.objects.head(specKey(job.id)));
  await collectGarbage({ ...stack, grace_ms: 0 });
  t.match(await readDeleted(stack.objects, job.id), { artifacts: 'removed' }, 'the answer stays the same');
  await collectGarbage({ ...stack, grace_ms: 0 });
  t.strictSame(await keysOf(stack, job), []);
});
