/** Pages of a stream: from its end, and of a range of steps. */
import t from 'tap';
import type { StreamEntry } from '../../contracts/index.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import type { JobStore } from '../job-store.js';
import { executionAt } from '../testing/executions.js';
import { metric, readAll, runningJob } from '../testing/streams.js';
import { metricsBetween } from './metrics-between.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

t.test('the newest entries in pages', async (t) => {
  const { store, id } = await runningJob(t, server);
  for (let step = 1; step <= 30; step += 1) {
    await store.report(id, executionAt(id, 1), [metric(step)], null);
    await store.appendEvent(id, executionAt(id, 1), { type: 'test.event' });
  }
  await store.appendLogs(id, executionAt(id, 1), []);
  const all = (await readAll(store, id, 1000)).reverse();
  const found: StreamEntry[] = [];
  for (let more = true; more; ) {
    const page = await store.readNewest(id, found.at(-1)?.position ?? null, 7, ['event', 'metric']);
    found.push(...page);
    more = page.length > 0;
    // Later entries are in no later page.
    await store.appendEvent(id, executionAt(id, 1), { type: 'test.late' });
  }
  t.same(found, all);
  const lost = `${all[0]?.position.replace(/-.*/, '')}-999-1`;
  await t.rejects(store.readNewest(id, lost, 7, ['event']), { code: 'position_lost' });
  t.same(await store.readNewest('job_none', null, 7, ['event']), []);
});

t.test(
  'a range of steps is read without most of the others, also those that recoveries repeated',
  async (t) => {
    const { store, id } = await runningJob(t, server);
    const runs = [
      [1, 950],
      [601, 1300],
      [1201, 2000],
    ] as const;
    for (const [from, to] of runs)
      await store.report(
        id,
        executionAt(id, 1),
        Array.from({ length: to - from + 1 }, (_, i) => metric(from + i)),
        null,
      );
    const all = (await readAll(store, id, 1000)).filter((entry) => entry.kind === 'metric');
    let read = 0;
    const counting: Pick<JobStore, 'readSteps'> = {
      async readSteps(...args) {
        const metrics = await store.readSteps(...args);
        read += metrics.length;
        return metrics;
      },
    };
    for (const [from, to, bound] of [
      [1, Number.POSITIVE_INFINITY, all.length],
      [1, 1, 100],
      [700, 702, 500],
      [1999, 3000, 200],
      [5000, 6000, 0],
    ] as const)
      for (const batch of [3, 1000]) {
        read = 0;
        const found: StreamEntry[] = [];
        for await (const one of metricsBetween(counting, id, { from, to }, { batch })) found.push(one);
        t.same(
          found,
          all.filter(({ step }) => step >= from && step <= to),
          `${from} to ${to} by ${batch}`,
        );
        t.ok(read <= bound, `${read} read for ${found.length}`);
      }
    const after = all[1000]?.position ?? null;
    const rest: StreamEntry[] = [];
    for await (const one of metricsBetween(store, id, { from: 700, to: 702 }, { after })) rest.push(one);
    t.same(
      rest,
      all.slice(1001).filter(({ step }) => step >= 700 && step <= 702),
    );
  },
);
