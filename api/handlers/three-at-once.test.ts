/** Every request that changes a job, sent three times at once: one effect. */
import type { InjectOptions } from 'fastify';
import t from 'tap';
import type { Job } from '../../contracts/index.js';
import { smallSpec, startTestStack } from '../testing/stack.js';
import { claimAndTrain } from '../testing/training.js';

const stack = await startTestStack();
t.teardown(() => stack.close());

async function thrice(options: InjectOptions): Promise<{ statuses: number[]; jobs: Job[] }> {
  const replies = await Promise.all([1, 2, 3].map(() => stack.request(options)));
  return {
    statuses: replies.map(({ statusCode }) => statusCode).sort(),
    jobs: replies
      .filter(({ statusCode }) => statusCode < 300)
      .flatMap(({ body }) => (body ? JSON.parse(body) : [])),
  };
}

async function countEvents({ id }: Job, type: string): Promise<number> {
  const events = await stack.store.readStream(id, 0, 100, ['event']);
  return events.filter((event) => 'type' in event && event.type === type).length;
}

const numJobs = async () =>
  (await stack.request({ url: '/v1/jobs?limit=100' })).json<{ data: Job[] }>().data.length;
const post = (job: Job, action: string, payload?: object): InjectOptions => ({
  method: 'POST',
  url: `/v1/jobs/${job.id}/${action}`,
  ...(payload && { payload }),
});

t.test('a job is made once, and forked once', async (t) => {
  const { id: dataset } = await stack.upload('to be or not to be, that is the question. '.repeat(20));
  const headers = { 'idempotency-key': 'three' };
  const made = await thrice({ method: 'POST', url: '/v1/jobs', headers, payload: smallSpec(dataset) });
  t.strictSame(made.statuses, [201, 201, 201]);
  t.equal(new Set(made.jobs.map(({ id }) => id)).size, 1);
  t.equal(await numJobs(), 1);
  const [job] = made.jobs;
  if (!job) return;
  await claimAndTrain(stack.store, job.id, { steps: 2 });
  const checkpoint = (await stack.store.getJob(job.id))?.latest_checkpoint?.id ?? '';
  const prefix = (await stack.store.findCheckpoint(checkpoint))?.checkpoint?.prefix;
  await stack.objects.put(`${prefix}/MANIFEST.json`, Buffer.from('{}'));
  const forked = await thrice({ ...post(job, 'fork', {}), headers });
  t.strictSame(forked.statuses, [201, 201, 201]);
  t.equal(new Set(forked.jobs.map(({ id }) => id)).size, 1);
  t.equal(await numJobs(), 2);
});

t.test('what is asked of a job is asked once', async (t) => {
  const job = await stack.createJob();
  t.strictSame((await thrice(post(job, 'pause'))).statuses, [202, 202, 202]);
  t.equal(await countEvents(job, 'job.state'), 1);
  t.strictSame((await thrice(post(job, 'resume', {}))).statuses, [202, 409, 409]);
  t.match(await stack.store.getJob(job.id), { state: 'queued', attempt: 2 });
  t.strictSame((await thrice(post(job, 'resize', { ranks: 3 }))).statuses, [202, 202, 202]);
  t.equal(await countEvents(job, 'resize.requested'), 1);
  const update = { method: 'PATCH', url: `/v1/jobs/${job.id}`, payload: { priority: 5 } } as const;
  t.strictSame((await thrice(update)).statuses, [200, 200, 200]);
  t.equal(await countEvents(job, 'job.updated'), 1);
  const claim = await stack.store.claimAttempt(job.id, 2, 'worker-a', 60_000);
  if (!claim.granted) throw new Error(claim.code);
  await stack.store.finishJob(job.id, claim.epoch, 'failed');
  t.strictSame((await thrice(post(job, 'retry'))).statuses, [202, 409, 409]);
  t.match(await stack.store.getJob(job.id), { state: 'queued', attempt: 3 });
  t.strictSame((await thrice(post(job, 'cancel'))).statuses, [202, 202, 202]);
  t.match(await stack.store.getJob(job.id), { state: 'cancelled', attempt: 3 });
  const deleted = await thrice({ method: 'DELETE', url: `/v1/jobs/${job.id}?artifacts=true` });
  t.ok(
    deleted.statuses.includes(204) && deleted.statuses.every((status) => status === 204 || status === 404),
  );
  t.equal(await stack.store.getJob(job.id), null);
  t.strictSame(await stack.store.listDeletedJobs(), []);
});
