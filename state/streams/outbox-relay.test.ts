import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { createLogger } from '../../platform/logging/logging.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { until, untilDone } from '../../platform/testing/waiting.js';
import { openJobStore } from '../job-store.js';
import { createTestJob } from '../testing/jobs.js';
import { decide } from '../testing/pools.js';
import { testWorker } from '../testing/workers.js';
import { type OutboxEntry, startOutboxRelay } from './outbox-relay.js';

const log = createLogger({ level: 'silent', name: 'test' });
const server = await startTestRedis();
t.teardown(() => server.stop());

async function setUp(t: Test) {
  const prefix = `{${ulid()}}`;
  const store = await openJobStore({ url: server.url, prefix });
  t.teardown(() => store.close());
  await store.announceWorker(testWorker('w', 100), 60_000);
  const start = async (deliver: (entry: OutboxEntry) => Promise<void>, retryAfterMs = 50) => {
    const relay = startOutboxRelay({ url: server.url, prefix, deliver, log, retryAfterMs });
    t.teardown(() => relay.stop());
    return relay;
  };
  return { store, start };
}

t.test('every attempt is delivered, including those from before the relay', async (t) => {
  const { store, start } = await setUp(t);
  const seen: OutboxEntry[] = [];
  const trace = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: null };
  const { id } = await createTestJob(store, {}, trace);
  await decide(store);
  await start(async (entry) => void seen.push(entry));
  await until(() => seen.length === 1);
  t.same(seen, [{ job_id: id, attempt: 1, worker_id: 'w', trace }]);
  await store.requestPause(id);
  await store.resumeJob(id);
  await decide(store);
  await until(() => seen.length === 2);
  t.same(seen[1], { job_id: id, attempt: 2, worker_id: 'w', trace });
  await sleep(150);
  t.equal(seen.length, 2, 'an acknowledged entry is not delivered again');
});

t.test('an entry survives a relay that dies between reading and delivering', async (t) => {
  const { store, start } = await setUp(t);
  const jobs = [await createTestJob(store), await createTestJob(store)];
  await decide(store);
  const reached: (() => void)[] = [];
  // The relay has read the entry and never continues, like a dead process.
  await start(() => new Promise((resolve) => reached.push(resolve)));
  t.teardown(() => {
    for (const wake of reached) wake();
  });
  await until(() => reached.length === 2);
  const seen: string[] = [];
  await start(async ({ job_id }) => void seen.push(job_id));
  await until(() => seen.length === 2);
  t.same(seen.sort(), jobs.map(({ id }) => id).sort());
});

t.test('an entry survives a crash between record and queue', async (t) => {
  const { store, start } = await setUp(t);
  const { id } = await createTestJob(store);
  await decide(store);
  await server.kill();
  await server.start();
  await untilDone(() => store.getJob(id));
  const seen: string[] = [];
  await start(async (entry) => void seen.push(entry.job_id));
  await until(() => seen.length === 1);
  t.same(seen, [id], 'the record existed, and so did its entry');
});

t.test('a failed delivery is retried without blocking others', async (t) => {
  const { store, start } = await setUp(t);
  const first = await createTestJob(store);
  const second = await createTestJob(store);
  await decide(store);
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
  await decide(store);
  await until(() => seen.size === 40);
  t.same([...seen.keys()].sort(), jobs.map(({ id }) => id).sort());
  t.ok(
    [...seen.values()].every((count) => count === 1),
    'none twice',
  );
});

t.test('stopping waits for the delivery in progress and its acknowledgement', async (t) => {
  const { store, start } = await setUp(t);
  await createTestJob(store);
  await decide(store);
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
  t.equal(ended, 1, 'no relay delivers it again');
});
