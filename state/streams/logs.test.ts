/** Log lines: sequence numbers, fencing, and bounds. */
import t, { type Test } from 'tap';
import { startTestRedis } from '../../platform/testing/redis.js';
import { LOGS_KEPT, type LogInput } from '../jobs/execution.js';
import { executionAt } from '../testing/executions.js';
import { runningJob } from '../testing/streams.js';

const LEASE_MS = 60_000;
const server = await startTestRedis();
t.teardown(() => server.stop());

const running = (t: Test) => runningJob(t, server);

const line = (message: string, rank: number | null = 0): LogInput => ({
  rank,
  at: '2026-03-01T12:00:00.000Z',
  stream: 'stdout',
  message,
  truncated: false,
  dropped: 0,
});

t.test('concurrent lines, events and metrics count in one sequence without gaps', async (t) => {
  const { store, id } = await running(t);
  await Promise.all(
    Array.from({ length: 20 }, (_, i) => [
      store.appendLogs(id, executionAt(id, 1), [line(`a${i}`), line(`b${i}`, 1), line(`c${i}`, null)]),
      store.appendEvent(id, executionAt(id, 1), { type: 'test.event' }),
    ]).flat(),
  );
  for (const page of [1, 7, 1000]) {
    const all = [];
    for (let more = true; more; ) {
      const entries = await store.readStream(id, all.at(-1)?.position ?? null, page);
      all.push(...entries);
      more = entries.length > 0;
    }
    t.same(
      all.map(({ seq }) => seq),
      [...all.keys()].map((i) => i + 1),
    );
    t.equal(all.filter(({ kind }) => kind === 'log').length, 60);
  }
  const [first] = await store.readStream(id, null, 1, ['log']);
  t.match(first, { kind: 'log', ...line('a0'), epoch: 1 });
  t.ok(await store.waitStream(id, null, { timeoutMs: 10 }));
});

t.test('a repeated batch adds nothing; batches of metrics are numbered separately', async (t) => {
  const { store, id } = await running(t);
  const first = await store.appendLogs(id, executionAt(id, 1), [line('1')], { batch: 1 });
  t.equal(await store.appendLogs(id, executionAt(id, 1), [line('1')], { batch: 1 }), first);
  await store.report(id, executionAt(id, 1), [], null, { batch: 7 });
  await store.appendLogs(id, executionAt(id, 1), [line('2')], { batch: 2 });
  await store.claimAttempt(id, 1, 'a', LEASE_MS);
  await store.appendLogs(id, executionAt(id, 2), [line('3')], { batch: 1 });
  t.match(await store.readStream(id, null, 10, ['log']), [
    { message: '1', epoch: 1 },
    { message: '2', epoch: 1 },
    { message: '3', epoch: 2 },
  ]);
});

t.test('lines of an epoch that has ended are refused', async (t) => {
  const { store, id } = await running(t);
  await store.claimAttempt(id, 1, 'a', LEASE_MS);
  await t.rejects(store.appendLogs(id, executionAt(id, 1), [line('of a zombie')]), { code: 'stale_epoch' });
  await store.transition(id, executionAt(id, 2), 'starting');
  await store.transition(id, executionAt(id, 2), 'running');
  await store.appendLogs(id, executionAt(id, 2), [line('the last one')]);
  await store.finishJob(id, executionAt(id, 2), 'failed', { reason: 'test' });
  await t.rejects(store.appendLogs(id, executionAt(id, 2), [line('too late')]), { code: 'job_final' });
  await t.rejects(store.appendLogs('job_none', executionAt('job_none', 1), []), { code: 'job_not_found' });
  t.match(await store.readStream(id, null, 10, ['log']), [{ message: 'the last one' }], 'kept after the end');
  await store.deleteJob(id, { artifacts: false });
  t.same(await store.readStream(id, null, 10, ['log']), []);
});

t.test('the newest lines are kept', async (t) => {
  const { store, id } = await running(t);
  for (let i = 0; i < LOGS_KEPT + 2_000; i += 1_000)
    await store.appendLogs(
      id,
      executionAt(id, 1),
      Array.from({ length: 1_000 }, (_, j) => line(String(i + j))),
    );
  const kept = await store.readStream(id, null, 100_000, ['log']);
  t.ok(kept.length >= LOGS_KEPT && kept.length < LOGS_KEPT + 500, `${kept.length} are left`);
  t.match(kept.at(-1), { message: String(LOGS_KEPT + 1_999) });
});
