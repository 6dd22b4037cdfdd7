import t from 'tap';
import { collect, Zerofleet } from './index.js';
import { json, scriptedServer } from './testing/scripted-server.js';

const LOST = json(410, {
  code: 'position_lost',
  title: 'The position was lost with the data of Redis',
  status: 410,
});
const page = (messages: string[], nextCursor: string | null) =>
  json(200, { data: messages.map((message) => ({ message })), next_cursor: nextCursor });

t.test('a list whose pages are lost with Redis continues with the recovered entries', async (t) => {
  const { url, seen } = await scriptedServer(t, [
    page(['a', 'b'], '00000001-2'),
    page(['c'], '00000001-3'),
    LOST,
    page(['d'], '00000002-1'),
    page(['e'], null),
  ]);
  const { jobs } = new Zerofleet({ baseUrl: url, apiKey: 'k' });
  const lines = await collect(jobs.logs('job_1', { after: '00000001-1' }));
  t.strictSame(
    lines.map(({ message }) => message),
    ['a', 'b', 'c', 'd', 'e'],
  );
  t.strictSame(
    seen.map((request) => new URL(request.url, url).searchParams.get('after')),
    ['00000001-1', '00000001-2', '00000001-3', null, '00000002-1'],
  );
});

t.test('a lost position of the caller is an error', async (t) => {
  const { url, seen } = await scriptedServer(t, [LOST]);
  const { jobs } = new Zerofleet({ baseUrl: url, apiKey: 'k' });
  await t.rejects(collect(jobs.events('job_1', '00000001-1')), { code: 'position_lost', status: 410 });
  t.equal(seen.length, 1);
});
