import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { createLogger } from '../logging.js';
import { createTestJob } from '../testing/jobs.js';
import { startTestRedis } from '../testing/redis.js';
import { until, untilDone } from '../testing/waiting.js';
import { type OutboxEntry, openJobStore, startOutboxRelay } from './index.js';

const log = createLogger({ level: 'silent', name: 'test' });
const server = await startTestRedis();
t.teardown(() => server.stop());

async function setUp(t: Test) {
  const prefix = `{${ulid()}}`;
  const store = await openJobStore({ url: server.url, prefix });
  t.teardown(() => store.close());
  const start = async (deliver: (entry: OutboxEntry) => Promise<void>, retryAfterMs = 50) => {
    const relay = await startOutboxRelay({ url: server.url, prefix, deliver, log, retryAfterMs });
    t.teardown(() => relay.stop());
    return relay;
  };
  return { store, start };
}

t.test('every attempt is delivered, those from before the relay as well', async (t) => {
  const { store, start } = await setUp(t);
  const seen: OutboxEntry[] = [];
  const trace = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: null };
  const early = await createTestJob(store, { resources: { pool: 'gpu' } }, trace);
  await start(async (entry) => void seen.push(entry));
  await until(() => seen.length === 1);
  t.same(seen, [{ job_id: early.id, attempt: 1, pool: 'gpu', delay_ms: 0, trace }]);

  await store.requestPause(early.id);
  await store.resumeJob(early.id);
  await until(() => seen.length === 2);
  t.same(seen[1], { job_id: early.id, attempt: 2, pool: 'gpu', delay_ms: 0, trace });
  await store.claimAttempt(early.id, 2, 'a', 60_000);
  await store.releaseAttempt(early.id, 1, { to: 'queued', delay_ms: 1234 });
  await until(() => seen.length === 3);
  t.same(seen[2], { job_id: early.id, attempt: 3, pool: 'gpu', delay_ms: 1234, trace });
  await sleep(150);
  t.equal(seen.length, 3, 'what was acknowledged does not come again');
});

t.test('an entry survives a relay that dies between reading and delivering', async (t) => {
  const { store, start } = await setUp(t);
  const { id } = await createTestJob(store);
  await store.claimAttempt(id, 1, 'a', 60_000);
  await store.releaseAttempt(id, 1, { to: 'queued', delay_ms: 60_000 });
  const reached: (() => void)[] = [];
  // Read, and then nothing any more: the process is gone.
  await start(() => new Promise((resolve) => reached.push(resolve)));
  t.teardown(() => {
    for (const wake of reached) wake();
  });
  await until(() => reached.length === 2);
  const seen: Partial<OutboxEntry>[] = [];
  await start(async ({ job_id, attempt, delay_ms }) => void seen.push({ job_id, attempt, delay_ms }));
  await until(() => seen.length === 2);
  t.same(seen, [
    { job_id: id, attempt: 1, delay_ms: 0 },
    { job_id: id, attempt: 2, delay_ms: 60_000 },
  ]);
});

t.test('an entry survives a crash of everything between record and queue', async (t) => {
  const { store, start } = await setUp(t);
  const { id } = await createTestJob(store);
  await server.kill();
  await server.start();
  await untilDone(() => store.getJob(id));
  const seen: string[] = [];
  await start(async (entry) => void seen.push(entry.job_id));
  await until(() => seen.length === 1);
  t.same(seen, [id], 'the record was there, and so was its entry');
});

t.test('a delivery that fails is tried again and holds up nobody', async (t) => {
  const { store, start } = await setUp(t);
  const first = await createTestJob(store);
  const second = await createTestJob(store);
  const order: string[] = [];
  let failures = 2;
  await start(async ({ job_id }) => {
    if (job_id === first.id && failures > 0) {
      failures -= 1;
      throw new Error('the queue is not there');
    }
    order.push(job_id);
  });
  await until(() => order.length === 2);
  t.same(order, [second.id, first.id]);
  t.equal(failures, 0);
});

t.test('several relays share the work', async (t) => {
  const { store, start } = await setUp(t);
  const seen = new Map<string, number>();
  const deliver = async ({ job_id }: OutboxEntry) => {
    await sleep(1);
    seen.set(job_id, (seen.get(job_id) ?? 0) + 1);
  };
  await Promise.all([1, 2, 3].map(() => start(deliver, 5_000)));
  const jobs = await Promise.all(Array.from({ length: 40 }, () => createTestJob(store)));
  await until(() => seen.size === 40);
  t.same([...seen.keys()].sort(), jobs.map(({ id }) => id).sort());
  t.ok(
    [...seen.values()].every((count) => count === 1),
    'none twice',
  );
});

t.test('stopping waits for the delivery that is under way, and its acknowledgement', async (t) => {
  const { store, start } = await setUp(t);
  await createTestJob(store);
  let begun = false;
  let ended = 0;
  const relay = await start(async () => {
    begun = true;
    await sleep(30);
    ended += 1;
  });
  await until(() => begun);
  await relay.stop();
  t.equal(ended, 1);
  await relay.stop();
  await start(async () => {
    ended += 1;
  });
  await sleep(150);
  t.equal(ended, 1, 'nobody delivers it again');
});
