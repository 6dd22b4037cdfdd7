import type { ServerResponse } from 'node:http';
import t from 'tap';
import type { StreamEntry } from '../contracts/types.js';
import { Zerofleet } from './index.js';
import { type Answer, breakOff, json, scriptedServer } from './testing/scripted-server.js';

const QUICK = { first_ms: 1, max_ms: 2 };

const metric = (seq: number) => ({ seq, kind: 'metric', step: seq });
const message = (seq: number) => `id: ${seq}\nevent: metric\ndata: ${JSON.stringify(metric(seq))}\n\n`;
const END = 'event: end\ndata: {"state":"succeeded"}\n\n';

/** Sends the text; then the connection ends as it should, or breaks. */
const stream =
  (text: string, end: (response: ServerResponse) => void = (response) => response.end()): Answer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(text, () => end(response));
  };
const broken = (response: ServerResponse) => setImmediate(() => response.destroy());

t.test('a stream that breaks goes on behind the last entry, and ends with the job', async (t) => {
  const { url, seen } = await scriptedServer(t, [
    stream(`: hello\n\n${message(1)}${message(2)}${message(3).slice(0, 20)}`, broken),
    breakOff,
    stream(`${message(3)}`),
    stream(''),
    stream(`${message(4)}${END}`),
  ]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  const entries: StreamEntry[] = [];
  const follow = client.jobs.follow('job_1');
  let result = await follow.next();
  for (; !result.done; result = await follow.next()) entries.push(result.value);
  t.equal(result.value, 'succeeded');
  t.strictSame(entries, [1, 2, 3, 4].map(metric));
  t.strictSame(
    seen.map(({ headers }) => headers['last-event-id']),
    [undefined, '2', '2', '3', '3'],
  );
});

t.test('it comes back when the server asks for it', async (t) => {
  const { url } = await scriptedServer(t, [
    stream(`retry: 1000\n\n${message(1)}retry: 5\n\n`),
    stream(`retry: 700\n\n${message(2)}`),
    stream(END),
  ]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  const at: number[] = [performance.now()];
  for await (const _ of client.jobs.follow('job_1')) at.push(performance.now());
  at.push(performance.now());
  const [, moved = 0, waited = 0] = at.slice(1).map((time, index) => time - (at[index] ?? 0));
  t.ok(moved < 500, `soon after a shutdown: ${moved}`);
  t.ok(waited >= 690, `in its time else: ${waited}`);
});

t.test('it can begin later, and be given up', async (t) => {
  const { url, seen } = await scriptedServer(t, [stream(message(8), () => {})]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  const abort = new AbortController();
  const follow = client.jobs.follow('job_1', { after: 7, signal: abort.signal });
  t.strictSame(await follow.next(), { value: metric(8), done: false });
  t.equal(seen[0]?.headers['last-event-id'], '7');
  const next = follow.next();
  abort.abort();
  await t.rejects(next, { name: 'AbortError' });
});

t.test('waiting answers with the job at its end; a refusal is an error', async (t) => {
  const { url } = await scriptedServer(t, [
    stream(`${message(1)}${END}`),
    json(200, { id: 'job_1', state: 'succeeded' }),
    json(404, { code: 'job_not_found', title: 'No such job', status: 404 }),
  ]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  t.match(await client.jobs.wait('job_1'), { state: 'succeeded' });
  await t.rejects(client.jobs.wait('job_2'), { code: 'job_not_found', message: /stream of job_2: 404/ });
});
