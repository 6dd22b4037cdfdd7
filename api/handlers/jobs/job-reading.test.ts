import { Redis } from 'ioredis';
import t from 'tap';
import type { DryRun, Job, JobMetric, Page, Problem } from '../../../contracts/index.js';
import { smallSpec, startTestStack } from '../../testing/stack.js';
import { claimAndTrain, metricOf } from '../../testing/training.js';

const stack = await startTestStack();
t.teardown(() => stack.close());
const list = async (query: string) =>
  (await stack.request({ url: `/v1/jobs?${query}` })).json<Page<Job>>().data.map(({ id }) => id);

t.test('a list by several labels, and by time', async (t) => {
  const both = await stack.createJob({ labels: { team: 'a', kind: 'x' } });
  const one = await stack.createJob({ labels: { team: 'a' } });
  t.strictSame(await list('label=team%3Da'), [one.id, both.id]);
  t.strictSame(await list('label=team%3Da&label=kind%3Dx'), [both.id]);
  t.strictSame(await list('label=kind%3Dx&label=team%3Da&state=paused'), []);
  const after = (time: string) => list(`label=team%3Da&created_after=${encodeURIComponent(time)}`);
  t.strictSame(await after(both.created_at), both.created_at < one.created_at ? [one.id] : []);
  t.strictSame(await after('2020-01-01T00:00:00+02:00'), [one.id, both.id]);
  t.strictSame(await after(new Date(Date.now() + 60_000).toISOString()), []);
  for (const query of ['created_after=yesterday', 'label=team', 'label=a%3Db&labels=c'])
    t.equal((await stack.request({ url: `/v1/jobs?${query}` })).statusCode, 400, query);
});

t.test('the queue position', async (t) => {
  const [first, second] = [await stack.createJob(), await stack.createJob({ priority: 50 })];
  const position = async ({ id }: Job) =>
    (await stack.request({ url: `/v1/jobs/${id}` })).json<Job>().queue_position;
  t.equal(second.queue_position, 1);
  const before = (await position(first)) ?? 0;
  t.ok(before > 1);
  await claimAndTrain(stack.store, second.id, { steps: 1 });
  t.equal(await position(second), null);
  t.equal(await position(first), before - 1);
  const listed = (await stack.request({ url: '/v1/jobs?state=queued' })).json<Page<Job>>().data;
  t.equal(listed.find(({ id }) => id === first.id)?.queue_position, before - 1);
});

t.test('a dry run checks everything and records nothing', async (t) => {
  const { id } = await stack.upload('to be or not to be, that is the question. '.repeat(20));
  const before = await list('limit=100');
  const send = (payload: object, headers = {}) =>
    stack.request({ method: 'POST', url: '/v1/jobs?dry_run=true', payload, headers });
  const reply = await send(smallSpec(id), { 'idempotency-key': 'dry' });
  t.equal(reply.statusCode, 200);
  const { spec, estimate } = reply.json<DryRun>();
  t.match(spec, { train: { steps: 10, sequence_length: 128 }, resources: { ranks: { max: 4 } } });
  t.strictSame(
    estimate.data.map(({ world_size }) => world_size),
    [1, 2, 3, 4],
  );
  const refused = await send({ ...smallSpec(`ds_${'0'.repeat(26)}`), prioriy: 1 });
  t.match(refused.json<Problem>(), { status: 422, errors: [{}, {}] });
  t.strictSame(await list('limit=100'), before);
  const made = await stack.request({
    method: 'POST',
    url: '/v1/jobs',
    payload: smallSpec(id),
    headers: { 'idempotency-key': 'dry' },
  });
  t.equal(made.statusCode, 201, 'the idempotency key is still unused');
});

t.test('a long poll answers on a change; all waiting requests share one subscription', async (t) => {
  const job = await stack.createJob();
  const url = `/v1/jobs/${job.id}`;
  const redis = new Redis({ path: new URL(stack.redis.url).pathname });
  t.teardown(() => redis.disconnect());
  const subscribed = async () => {
    const channels = (await redis.call('PUBSUB', 'CHANNELS', `*${job.id}:control`)) as string[];
    if (channels.length === 0) return [];
    return (await redis.call('PUBSUB', 'NUMSUB', ...channels)) as [string, number];
  };
  const waiting = Array.from({ length: 50 }, () =>
    stack.request({ url: `${url}?wait=60s&since_version=${job.state_version}` }),
  );
  while ((await subscribed()).length === 0);
  t.equal((await subscribed())[1], 1);
  await stack.request({ method: 'POST', url: `${url}/pause` });
  for (const reply of await Promise.all(waiting)) t.equal(reply.json<Job>().state, 'paused');
  while ((await subscribed()).length > 0);

  const behind = await stack.request({ url: `${url}?wait=60s&since_version=1` });
  t.equal(behind.json<Job>().state, 'paused', 'an earlier change is answered immediately');
  const { etag } = behind.headers;
  const unchanged = await stack.request({
    url: `${url}?wait=1s`,
    headers: { 'if-none-match': String(etag) },
  });
  t.equal(unchanged.statusCode, 304, 'nothing happened');
  for (const query of ['wait=61s', 'wait=0s', 'wait=5', 'since_version=-1'])
    t.equal((await stack.request({ url: `${url}?${query}` })).statusCode, 400, query);
});

t.test('metrics of a range, and a downsampled curve', async (t) => {
  const job = await stack.createJob({ train: { steps: 2000 } });
  const execution = await claimAndTrain(stack.store, job.id, { steps: 1 });
  const spike = 1234;
  for (let step = 2; step <= 2000; step += 500) {
    const metrics = Array.from({ length: Math.min(500, 2001 - step) }, (_, i) => ({
      ...metricOf(step + i),
      ...(step + i === spike && { grad_norm: 1000 }),
    }));
    const progress = { ...job.progress, step: step + metrics.length - 1 };
    await stack.store.report(job.id, execution, metrics, progress);
  }
  const read = async (query: string) =>
    (await stack.request({ url: `/v1/jobs/${job.id}/metrics?${query}` })).json<Page<JobMetric>>();
  const range = await read('from_step=700&to_step=709&limit=6');
  t.strictSame(
    range.data.map(({ step }) => step),
    [700, 701, 702, 703, 704, 705],
  );
  const rest = await read(`from_step=700&to_step=709&limit=6&after=${range.next_cursor}`);
  t.strictSame(
    rest.data.map(({ step }) => step),
    [706, 707, 708, 709],
  );
  t.equal(rest.next_cursor, null);
  const curve = await read('max_points=50&names=loss&names=grad_norm');
  t.ok(curve.data.length <= 50 && curve.data.length > 20);
  t.ok(curve.data.some(({ grad_norm }) => grad_norm === 1000));
  t.equal(curve.data.at(-1)?.step, 2000);
  const all = await read('max_points=50&from_step=10&to_step=20&names=grad_norm');
  t.equal(all.data.length, 11);
  const bad = await stack.request({ url: `/v1/jobs/${job.id}/metrics?max_points=50&names=los` });
  t.equal(bad.statusCode, 400);
});
