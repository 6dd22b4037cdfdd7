import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import type { JobLog, Page } from '../../../contracts/index.js';
import type { LogInput } from '../../../state/index.js';
import { openStream } from '../../testing/sse-client.js';
import { ADMIN_KEY, startTestStack } from '../../testing/stack.js';
import { claimAndTrain, metricOf } from '../../testing/training.js';

const HEARTBEAT_MS = 100;

const line = (rank: number | null, message: string): LogInput => ({
  rank,
  at: '2026-03-01T12:00:00.000Z',
  stream: rank === null ? 'worker' : 'stdout',
  message,
  truncated: false,
  dropped: 0,
});

t.test('log lines', async (t) => {
  const stack = await startTestStack({ limits: { heartbeat_ms: HEARTBEAT_MS } });
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const { store } = stack;
  const { id } = await stack.createJob();
  const execution = await claimAndTrain(store, id, { steps: 3 });
  for (let i = 0; i < 2_500; i += 100)
    await store.appendLogs(
      id,
      execution,
      Array.from({ length: 100 }, (_, j) => line((i + j) % 500 === 0 ? 7 : j % 2, String(i + j))),
    );
  await store.appendLogs(id, execution, [line(null, 'of the job')]);

  const page = async (query: string) =>
    (await stack.request({ url: `/v1/jobs/${id}/logs?${query}` })).json<Page<JobLog>>();
  const pages = async (query: string) => {
    const found: JobLog[] = [];
    for (let after: string | null = ''; after !== null; ) {
      const { data, next_cursor }: Page<JobLog> = await page(query + (after && `&after=${after}`));
      found.push(...data);
      after = next_cursor;
    }
    return found.map(({ message }) => message);
  };

  t.test('pages, of all ranks or of one', async (t) => {
    const all = [...Array.from({ length: 2_500 }, (_, i) => String(i)), 'of the job'];
    t.same(await pages('limit=1000'), all);
    t.same(await pages('limit=333'), all);
    for (const limit of [1, 2, 100])
      t.same(await pages(`rank=7&limit=${limit}`), ['0', '500', '1000', '1500', '2000']);
    t.equal((await pages('rank=0&limit=400')).length, 1_245);
    t.same(await page('rank=8'), { data: [], next_cursor: null });
    t.match((await page('limit=1')).data, [{ kind: 'log', ...line(7, '0'), epoch: 1 }]);
    t.equal((await stack.request({ url: `/v1/jobs/${id}/logs?rank=-1` })).statusCode, 400);
  });

  t.test('in the stream, in one sequence with other entries; filtered by kind', async (t) => {
    const job = await stack.createJob();
    const held = await claimAndTrain(store, job.id, { steps: 2 });
    const url = `${base}/v1/jobs/${job.id}/stream`;
    const live = await openStream(`${url}?kinds=log`, ADMIN_KEY);
    await store.appendLogs(job.id, held, [line(0, 'first'), line(1, 'second')]);
    const seen: unknown[] = [];
    await live.until(
      ({ data }) => data.message === 'second',
      ({ event, data }) => seen.push([event, data.message]),
    );
    t.same(seen, [
      ['log', 'first'],
      ['log', 'second'],
    ]);
    live.close();
    await store.finishJob(job.id, held, 'succeeded');

    const all = await (await openStream(url, ADMIN_KEY)).rest();
    const seqs = all.slice(0, -1).map(({ data }) => data.seq);
    t.same(
      seqs,
      seqs.map((_, i) => i + 1),
    );
    t.equal(all.filter(({ event }) => event === 'log').length, 2, 'kept after the job has ended');
    for (let cut = 0; cut < all.length; cut += 1)
      t.same(
        await (await openStream(url, ADMIN_KEY, all[cut - 1]?.id)).rest(),
        all.slice(cut),
        `after ${cut}`,
      );
    const some = await (await openStream(`${url}?kinds=event&kinds=log`, ADMIN_KEY)).rest();
    t.same(
      some,
      all.filter(({ event }) => event !== 'metric'),
    );
    t.equal((await stack.request({ url: `/v1/jobs/${job.id}/stream?kinds=nonsense` })).statusCode, 400);
  });

  t.test('a follower gets heartbeats while only filtered entries arrive', async (t) => {
    const last = (await store.readStream(id, null, 10_000)).at(-1)?.position;
    const client = await openStream(`${base}/v1/jobs/${id}/stream?kinds=log`, ADMIN_KEY, last);
    for (let step = 4; client.comments < 3 && step < 400; step++) {
      await store.report(id, execution, [metricOf(step)], null);
      await sleep(HEARTBEAT_MS / 5);
    }
    t.ok(client.comments >= 3);
    client.close();
  });
});
