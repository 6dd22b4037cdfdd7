/** Positions in a job's stream: shared by lists and streams, and invalidated by a loss of Redis. */
import t from 'tap';
import type { Page, Problem, StreamEntry } from '../../../contracts/index.js';
import { until } from '../../../platform/testing/waiting.js';
import { openStream, type SseClientMessage } from '../../testing/sse-client.js';
import { ADMIN_KEY, startTestStack } from '../../testing/stack.js';
import { claimAndTrain } from '../../testing/training.js';

const LISTS = ['events', 'metrics', 'logs'];

async function trained(t: { teardown(end: () => Promise<void>): void }) {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const job = await stack.createJob();
  const url = `/v1/jobs/${job.id}`;
  const stream = `${await stack.listen()}${url}/stream`;
  /** Reports steps of the job like a worker, up to a last step. */
  const train = async (steps: number) => {
    const epoch = await claimAndTrain(stack.store, job.id, { steps });
    const line = { rank: 0, at: job.created_at, stream: 'stdout', truncated: false, dropped: 0 } as const;
    const lines = Array.from({ length: steps }, (_, i) => ({ ...line, message: `line ${i + 1}` }));
    await stack.store.appendLogs(job.id, epoch, lines);
    return epoch;
  };
  return {
    stack,
    job,
    train,
    ask: (list: string, query = '') => stack.request({ url: `${url}/${list}${query}` }),
    page: async (list: string, query = '') =>
      (await stack.request({ url: `${url}/${list}${query}` })).json<Page<StreamEntry>>(),
    open: (position?: string) => openStream(stream, ADMIN_KEY, position),
  };
}

t.test('positions of lists work in the stream, and vice versa', async (t) => {
  const { stack, job, train, page, open } = await trained(t);
  const epoch = await train(3);
  await stack.store.finishJob(job.id, epoch, 'succeeded');
  const all = await (await open()).rest();
  for (const list of LISTS) {
    const { data, next_cursor } = await page(list, '?limit=2');
    const last = data.at(-1)?.position;
    t.equal(next_cursor, last, list);
    const at = all.findIndex(({ id }) => id === last);
    t.same(all[at]?.data, data.at(-1));
    t.same(await (await open(last)).rest(), all.slice(at + 1));
    const rest = all.slice(at + 1).filter(({ event }) => `${event}s` === list);
    t.same(
      (await page(list, `?after=${all[at]?.id}`)).data,
      rest.map(({ data: entry }) => entry),
    );
    t.same(await page(list, `?after=${all.at(-2)?.id}`), { data: [], next_cursor: null }, 'the end');
  }
});

t.test('a malformed position is refused with an explanation', async (t) => {
  const { train, ask, stack, job } = await trained(t);
  await train(1);
  const texts = [
    '3',
    '0',
    'x',
    '3fa91c0b-',
    '3fa91c0b-0-1',
    '3FA91C0B-3-1',
    '3fa91c0b-3',
    '3fa91c0b-3-',
    '3fa91c0b-3-1-1',
    '-3',
  ];
  const sentence = /such as `3fa91c0b-41-660da8a518800`/;
  const refused = (pointer: string) => ({
    code: 'invalid_parameter',
    status: 400,
    errors: [{ pointer, code: 'wrong_format', message: sentence }],
  });
  for (const text of texts) {
    for (const list of LISTS)
      t.match((await ask(list, `?after=${text}`)).json<Problem>(), refused('/query/after'), text);
    const headers = { 'last-event-id': text };
    const reply = await stack.request({ url: `/v1/jobs/${job.id}/stream`, headers });
    t.match(reply.json<Problem>(), refused('/header/last-event-id'), text);
  }
});

t.test(
  'lists refuse a position that was lost with Redis, even after they have grown beyond it',
  async (t) => {
    const { stack, train, ask, page } = await trained(t);
    await train(3);
    const positions = new Map<string, string>();
    for (const list of LISTS) positions.set(list, `${(await page(list)).data.at(-1)?.position}`);
    await stack.loseRedis();
    await train(9);
    for (const list of LISTS) {
      const after = positions.get(list);
      for (const query of ['', '&limit=1', ...(list === 'logs' ? ['&rank=0'] : [])])
        t.match((await ask(list, `?after=${after}${query}`)).json<Problem>(), {
          code: 'position_lost',
          status: 410,
          detail: /start again without `after`/,
          retryable: false,
        });
      const { data } = await page(list);
      t.ok(data.every(({ position }) => position.slice(0, 8) !== after?.slice(0, 8)));
      const [first, ...rest] = data;
      t.same((await page(list, `?after=${first?.position}`)).data, rest, list);
    }
    t.match((await page('events')).data[0], { seq: 1, type: 'job.recovered' });
  },
);

t.test('a stream that was lost with Redis starts again after a reset event', async (t) => {
  const { stack, train, open } = await trained(t);
  await train(3);
  const follower = await open();
  let position: string | undefined;
  await follower.until(
    ({ data }) => data.message === 'line 3',
    ({ id }) => {
      position = id;
    },
  );
  await until(() => stack.followers() === 1);
  await stack.loseRedis();
  // The stream grows beyond the earlier position.
  await train(9);

  const again = await open(position);
  // The last event before the loss of Redis.
  await follower.until((message) => message.event === 'reset');
  for (const client of [again, follower]) {
    const seen: SseClientMessage[] = [];
    await client.until(
      ({ data }) => data.message === 'line 9',
      (message) => seen.push(message),
    );
    if (client === again) t.match(seen.shift(), { event: 'reset', id: '' });
    t.same(
      seen.map(({ data }) => data.seq),
      seen.map((_, index) => index + 1),
    );
    t.match(seen[0]?.data, { type: 'job.recovered' });
    t.not(seen.at(-1)?.id?.split('-')[0], position?.split('-')[0]);
  }
  again.close();
  follower.close();
});
