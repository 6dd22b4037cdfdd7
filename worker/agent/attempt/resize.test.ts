import t from 'tap';
import { REDIS_PREFIX } from '../../../contracts/index.js';
import { connectRedis, disconnectRedis } from '../../../platform/redis/connect.js';
import { until } from '../../../platform/testing/waiting.js';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { Fleet } from '../../testing/fleet.js';

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

async function fleet(t: { teardown(end: () => Promise<void>): void }): Promise<Fleet> {
  const started = await Fleet.start({ ranks: { slow: { from: 2, ms: 100 } } });
  t.teardown(() => started.close());
  return started;
}

/** Returns the ranks of each generation that reached its first step. */
async function generations(f: Fleet, id: string): Promise<unknown[]> {
  const events = await f.events(id);
  return events.filter(({ type }) => type === 'training.started').map(({ data }) => data.world_size);
}

const running =
  (ranks: number) => (job: { state: string; world_size: number | null; progress: { step: number } }) =>
    job.state === 'running' && job.world_size === ranks && job.progress.step > 0;

t.test('a running job grows from two ranks to three and shrinks to one with the same bits', async (t) => {
  const f = await fleet(t);
  await f.agent(4);
  const id = await f.submit({ steps: 400, every_steps: 1000, ranks: 2, max_errors: 0 });
  await f.until(id, running(2));
  for (const ranks of [3, 1]) {
    const requested = await f.store.requestResize(id, ranks);
    t.match(requested, { state: 'running', requested_ranks: ranks }, 'requested, not stopped');
    await f.until(id, running(ranks));
    t.match(await f.store.listWorkers(), [{ slots: 4, used_slots: ranks }], 'the used slots follow');
  }
  await f.speedUp();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 400));
  t.match(job, { attempt: 1, epoch: 1, lost_work_seconds: 0 });
  t.strictSame(await f.steps(id), upTo(400), 'no step was repeated');
  t.strictSame(await generations(f, id), [2, 3, 1]);
  const [attempt] = (await f.store.listAttempts(id)).data;
  t.match(attempt?.generations, [{ world_size: 2 }, { world_size: 3 }, { world_size: 1, ended_at: String }]);
  t.ok(
    (attempt?.generations.at(-1)?.ended_at ?? '') < (attempt?.ended_at ?? ''),
    'no rank trains during the export',
  );
  const changes = (await f.events(id)).filter(({ type }) => /^(ranks.changed|resize.requested)$/.test(type));
  t.match(
    changes.map(({ type, data }) => ({ type, data })),
    [
      { type: 'resize.requested', data: { from: 2, to: 3 } },
      { type: 'ranks.changed', data: { from: 2, to: 3 } },
      { type: 'resize.requested', data: { from: 3, to: 1 } },
      { type: 'ranks.changed', data: { from: 3, to: 1 } },
    ],
  );
  t.ok(job.state_history.some(({ state, reason }) => state === 'starting' && reason === 'resize'));
});

t.test('a job starts with the free slots and grows when more become free', async (t) => {
  const f = await fleet(t);
  await f.agent(3);
  const first = await f.submit({ steps: 100_000, ranks: 2 });
  await f.until(first, running(2));
  const id = await f.submit({ steps: 400, every_steps: 1000, ranks: 3 });
  await f.until(id, running(1));
  await f.store.requestCancel(first);
  await f.until(id, running(3));
  await f.speedUp();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 400));
  t.strictSame(await generations(f, id), [1, 3]);
});

t.test(
  'jobs of lower priority shrink or stop for a job of a higher one, and resume afterwards',
  async (t) => {
    const f = await fleet(t);
    await f.agent(2);
    const low = await f.submit({ steps: 300, every_steps: 1000, ranks: 2 });
    await f.until(low, running(2));
    const first = await f.submit({ steps: 10_000, ranks: 1, priority: 1 });
    await f.until(first, running(1));
    await f.until(low, running(1));
    const second = await f.submit({ steps: 10_000, ranks: 1, priority: 1 });
    const left = await f.untilState(low, 'queued');
    t.equal(left.latest_checkpoint?.step, left.progress.step, 'all progress is saved');
    await f.until(second, running(1));
    await f.store.requestCancel(first);
    await f.store.requestCancel(second);
    await f.speedUp();
    const job = await f.untilState(low, 'succeeded');
    t.equal(job.export?.state_digest, fakeStateDigest(1, 300));
    t.match(job, { attempt: 2, lost_work_seconds: 0 });
    t.strictSame((await generations(f, low)).slice(0, 2), [2, 1]);
    t.ok(job.state_history.some(({ state, reason }) => state === 'queued' && reason === 'preempted'));
    t.strictSame(await f.steps(low), upTo(300), 'no step was repeated');
  },
);

t.test('a job moves to another worker with the same bits', async (t) => {
  const f = await fleet(t);
  await f.agent(4);
  const id = await f.submit({ steps: 300, every_steps: 1000, ranks: 1, max_errors: 0, preemptions: 0 });
  await f.until(id, running(1));
  await f.agent(2);
  const other = await f.submit({ steps: 100_000, ranks: 1 });
  await f.until(other, running(1));
  const workers = await f.store.listWorkers();
  const from = workers.find(({ slots }) => slots === 4)?.id ?? '';
  const to = workers.find(({ slots }) => slots === 2)?.id ?? '';
  t.equal(await f.store.vacateWorkers('default', [from]), true);
  await f.until(id, (job) => job.attempt === 2 && running(1)(job));
  await f.speedUp();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 300));
  t.match(job, { attempt: 2, epoch: 2, lost_work_seconds: 0 });
  t.strictSame(await f.steps(id), upTo(300), 'no step was repeated');
  t.ok(job.state_history.some(({ state, reason }) => state === 'queued' && reason === 'moved'));
  const { data } = await f.store.listAttempts(id);
  t.match(data, [{ workers: [to] }, { workers: [from], outcome: 'requeued', reason: 'moved' }]);
});

t.test('a job ignores a preemption request of a job that is gone', async (t) => {
  const f = await fleet(t);
  await f.agent(2);
  const id = await f.submit({ steps: 400, every_steps: 1000, ranks: 2, max_errors: 0 });
  await f.until(id, running(2));
  const gone = await f.submit({ steps: 10 });
  await f.store.requestCancel(gone);
  const redis = await connectRedis(f.redis.url, 'commands');
  const key = `${REDIS_PREFIX}:job:${id}`;
  await redis.hset(key, { preemption_request: '0', preemptor: gone });
  await redis.publish(`${key}:control`, 'preemption_request');
  // The scheduler may withdraw it before the worker reads it; else the job releases its slots, and gets them again.
  await until(async () => (await redis.hget(key, 'preemption_request')) === '');
  await f.speedUp();
  const job = await f.untilState(id, 'succeeded');
  t.equal(await redis.hget(key, 'preemption_request'), '');
  await disconnectRedis(redis);
  t.equal(job.export?.state_digest, fakeStateDigest(1, 400));
  t.match(job, { attempt: 1, epoch: 1, lost_work_seconds: 0 });
});
