/** Integrations that are due, and the claims of servers on them. */

import { Redis } from 'ioredis';
import t from 'tap';
import type { Integration } from '../../contracts/index.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { until } from '../../platform/testing/waiting.js';
import { openJobStore } from '../job-store.js';
import { createTestJob } from '../testing/jobs.js';
import type { ClaimedForward, ClaimTerms } from './forwards.js';

const server = await startTestRedis();
const store = await openJobStore({ url: server.url });
const redis = new Redis({ path: new URL(server.url).pathname });
t.teardown(async () => {
  redis.disconnect();
  await store.close();
  await server.stop();
});

const LONG = 600_000;
const TERMS: ClaimTerms = { limit: 10, lease_ms: LONG, idle_ms: LONG };
const integration: Integration = { type: 'mlflow', url: 'https://mlflow.example.com', experiment: 'e' };
const claim = (terms: Partial<ClaimTerms> = {}) => store.claimForwards({ ...TERMS, ...terms });

async function claimOne(terms: Partial<ClaimTerms> = {}): Promise<ClaimedForward> {
  let claimed: ClaimedForward[] = [];
  await until(async () => {
    claimed = await claim({ ...terms, limit: 1 });
    return claimed.length > 0;
  });
  return claimed[0] as ClaimedForward;
}

t.test('a job makes its integrations due, and each has one claim', async (t) => {
  await createTestJob(store);
  t.same(await claim(), [], 'none without integrations');
  const { id } = await createTestJob(store, { integrations: [integration, integration] });
  const [first, ...others] = await claim({ limit: 1 });
  t.match(first, { job_id: id, index: 0, seq: 1, state: null, interrupted: false });
  t.same(others, []);
  t.match(await claim(), [{ job_id: id, index: 1 }]);
  t.same(await claim(), []);
  await store.finishJob(id, null, 'cancelled');
  await store.deleteJob(id, { artifacts: false });
  t.same(await redis.keys('*forward*'), [], 'a deleted job leaves nothing');
  t.notOk(await store.saveForward(first as ClaimedForward, { state: {}, next: { due_ms: 0 } }));
  t.same(await redis.keys('*forward*'), []);
});

t.test('a claim that is not renewed expires, and its server can save nothing more', async (t) => {
  const { id } = await createTestJob(store, { integrations: [integration] });
  const lost = await claimOne({ lease_ms: 1 });
  t.ok(await store.saveForward(lost, { state: { step: 1 }, next: { lease_ms: 1 } }));
  const next = await claimOne();
  t.match(next, { job_id: id, state: { step: 1 }, interrupted: true });
  t.notOk(await store.saveForward(lost, { state: { step: 2 }, next: 'done' }));
  t.ok(await store.saveForward(next, { state: { step: 3 }, next: { due_ms: 0 } }));
  const last = await claimOne();
  t.match(last, { state: { step: 3 }, interrupted: false });
  t.ok(await store.saveForward(last, { state: {}, next: 'done' }));
  t.same(await claim(), []);
});

t.test('a job without news is put off, and its own event is no news', async (t) => {
  const { id } = await createTestJob(store, { integrations: [integration] });
  const first = await claimOne();
  const event = { type: 'integration.started', data: { run_id: 'r' } };
  await store.saveForward(first, { state: {}, next: { due_ms: 0, seq: first.seq }, event });
  t.match((await store.readStream(id, null, 10)).at(-1), { ...event, seq: first.seq + 1 });
  t.same(await claim({ idle_ms: 1 }), []);
  await store.finishJob(id, null, 'cancelled');
  const second = await claimOne();
  t.ok(second.seq > first.seq + 1);
  await store.saveForward(second, { state: {}, next: 'done' });
});

t.test('a job without news is claimed at its beat, and before it if it has news', async (t) => {
  const { id } = await createTestJob(store, { integrations: [integration] });
  const first = await claimOne();
  await store.saveForward(first, { state: {}, next: { due_ms: 0, seq: first.seq, beat_ms: 0 } });
  const second = await claimOne();
  t.match(second, { job_id: id, seq: first.seq });
  await store.saveForward(second, { state: {}, next: { due_ms: 0, seq: second.seq, beat_ms: LONG } });
  t.same(await claim({ idle_ms: 1 }), []);
  await store.finishJob(id, null, 'cancelled');
  const third = await claimOne();
  await store.saveForward(third, { state: {}, next: 'done' });
});

t.test('a retried job is due again, and an end that was begun before does not count', async (t) => {
  const { id } = await createTestJob(store, { integrations: [integration] });
  const late = await claimOne();
  await store.finishJob(id, null, 'failed');
  await store.retryJob(id);
  t.notOk(await store.saveForward(late, { state: { step: 9 }, next: 'done' }));
  const again = await claimOne();
  t.match(again, { job_id: id, state: null, interrupted: true });
  await store.saveForward(again, { state: { step: 9 }, next: 'done' });
  t.same(await claim(), []);
});
