import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import t from 'tap';
import type { JobState, StreamEntry } from '../../contracts/types.js';
import { Zerofleet } from './index.js';
import { type Answer, breakOff, json, scriptedServer } from './testing/scripted-server.js';

const QUICK = { first_ms: 1, max_ms: 2 };

const metric = (seq: number, stream = '00000001') => ({
  seq,
  position: `${stream}-${seq}`,
  kind: 'metric',
  step: seq,
});
const message = (seq: number, stream?: string) => {
  const entry = metric(seq, stream);
  return `id: ${entry.position}\nevent: metric\ndata: ${JSON.stringify(entry)}\n\n`;
};
const END = 'event: end\ndata: {"state":"succeeded"}\n\n';

/** Sends the text; then the connection ends properly or breaks. */
const stream =
  (text: string, end: (response: ServerResponse) => void = (response) => response.end()): Answer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(text, () => end(response));
  };
/** An answer that does not end. `begun` resolves on its request, `closed` when the client has closed its connection. */
function endless(begin: Answer) {
  let ask: (response: ServerResponse) => void;
  const begun = new Promise<ServerResponse>((resolve) => {
    ask = resolve;
  });
  const answer: Answer = (response, request) => {
    ask(response);
    begin(response, request);
  };
  return { answer, begun, closed: begun.then((response) => once(response, 'close')) };
}
const broken = (response: ServerResponse) => setImmediate(() => response.destroy());

t.test('a broken stream resumes after the last entry and ends with the job', async (t) => {
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
  t.strictSame(
    entries,
    [1, 2, 3, 4].map((seq) => metric(seq)),
  );
  t.strictSame(
    seen.map(({ headers }) => headers['last-event-id']),
    [undefined, '00000001-2', '00000001-2', '00000001-3', '00000001-3'],
  );
});

t.test('a lost stream starts again', async (t) => {
  const reset = 'id: \nevent: reset\ndata: {}\n\n';
  const { url, seen } = await scriptedServer(t, [
    stream(message(7)),
    stream(reset),
    stream(message(1, '00000002')),
    stream(END),
  ]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  const entries: StreamEntry[] = [];
  for await (const entry of client.jobs.follow('job_1')) entries.push(entry);
  t.strictSame(entries, [metric(7), metric(1, '00000002')]);
  t.strictSame(
    seen.map(({ headers }) => headers['last-event-id']),
    [undefined, '00000001-7', undefined, '00000002-1'],
  );
});

t.test("it reconnects after the server's delay", async (t) => {
  const { url } = await scriptedServer(t, [
    stream(`retry: 100000000\n\n${message(1)}retry: 5\n\n`),
    stream(`retry: 700\n\n${message(2)}`),
    stream(END),
  ]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  let at = 0;
  // After the first entry it reconnects quickly: the last delay counts, as of a server that shuts down.
  for await (const _ of client.jobs.follow('job_1')) at = performance.now();
  const waited = performance.now() - at;
  t.ok(waited >= 690, `waited: ${waited}`);
});

t.test('it can start after a position and be aborted', async (t) => {
  const { url, seen } = await scriptedServer(t, [stream(message(8), () => {})]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  const abort = new AbortController();
  const follow = client.jobs.follow('job_1', { after: '00000001-7', signal: abort.signal });
  t.strictSame(await follow.next(), { value: metric(8), done: false });
  t.equal(seen[0]?.headers['last-event-id'], '00000001-7');
  const next = follow.next();
  abort.abort();
  await t.rejects(next, { name: 'AbortError' });
  const never = client.jobs.follow('job_1', { signal: abort.signal });
  await t.rejects(never.next(), { name: 'AbortError' });
  t.equal(seen.length, 1);
});

type Entries = AsyncGenerator<StreamEntry, JobState>;

const EXITS: { [way: string]: (entries: Entries) => Promise<void> } = {
  async break(entries) {
    for await (const _ of entries) break;
  },
  async 'a custom error'(entries) {
    const reading = async () => {
      for await (const { seq } of entries) throw new Error(`entry ${seq}`);
    };
    await t.rejects(reading(), { message: 'entry 1' });
  },
  async 'return() between two entries'(entries) {
    await entries.next();
    t.strictSame(await entries.return('paused'), { value: 'paused', done: true });
  },
  async 'return() while it waits'(entries) {
    await entries.next();
    const waiting = entries.next();
    t.strictSame(await entries.return('paused'), { value: 'paused', done: true });
    t.strictSame(await waiting, { value: 'paused', done: true });
    t.strictSame(await entries.next(), { value: undefined, done: true });
  },
  async 'throw() while it waits'(entries) {
    await entries.next();
    const mine = new Error('mine');
    const waiting = entries.next();
    await Promise.all([t.rejects(entries.throw(mine), mine), t.rejects(waiting, mine)]);
  },
};

for (const [way, leave] of Object.entries(EXITS))
  t.test(`its connection is closed when its consumer leaves through ${way}`, async (t) => {
    const { answer, closed } = endless(stream(message(1), () => {}));
    const { url } = await scriptedServer(t, [answer]);
    await leave(new Zerofleet({ baseUrl: url, apiKey: 'k' }).jobs.follow('job_1'));
    await closed;
  });

t.test('its connection is closed at the end of the job, even if the server keeps it open', async (t) => {
  const { answer, closed } = endless(stream(END, () => {}));
  const { url } = await scriptedServer(t, [answer]);
  const follow = new Zerofleet({ baseUrl: url, apiKey: 'k' }).jobs.follow('job_1');
  t.strictSame(await follow.next(), { value: 'succeeded', done: true });
  await closed;
});

t.test('leaving the log of one rank while lines of others arrive', async (t) => {
  const line = { seq: 1, kind: 'log', rank: 0, message: 'a' };
  const text = `id: 1\nevent: log\ndata: ${JSON.stringify(line)}\n\n`;
  const { answer, begun, closed } = endless(stream(text, () => {}));
  const { url } = await scriptedServer(t, [answer]);
  const lines = new Zerofleet({ baseUrl: url, apiKey: 'k' }).jobs.followLogs('job_1', { rank: 1 });
  const waiting = lines.next();
  await begun;
  await lines.return('running');
  t.strictSame(await waiting, { value: 'running', done: true });
  await closed;
});

t.test('leaving it before the server answers and during a reconnect delay', async (t) => {
  const silent = endless(() => {});
  const { url, seen } = await scriptedServer(t, [stream(`retry: 100000000\n\n${message(1)}`), silent.answer]);
  const { jobs } = new Zerofleet({ baseUrl: url, apiKey: 'k' });
  const pausing = jobs.follow('job_1');
  await pausing.next();
  const paused = pausing.next();
  await pausing.return('paused');
  t.strictSame(await paused, { value: 'paused', done: true });
  const asking = jobs.follow('job_1');
  const unanswered = asking.next();
  await silent.begun;
  await asking.return('paused');
  t.strictSame(await unanswered, { value: 'paused', done: true });
  await silent.closed;
  t.equal(seen.length, 2);
});

t.test('wait() returns the finished job; a refusal is an error', async (t) => {
  const { url } = await scriptedServer(t, [
    stream(`${message(1)}${END}`),
    json(200, { id: 'job_1', state: 'succeeded' }),
    json(404, { code: 'job_not_found', title: 'No such job', status: 404 }),
  ]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  t.match(await client.jobs.wait('job_1'), { state: 'succeeded' });
  await t.rejects(client.jobs.wait('job_2'), { code: 'job_not_found', message: /stream of job_2: 404/ });
});
