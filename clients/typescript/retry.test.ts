import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { ConnectionError, Zerofleet } from './index.js';
import { breakOff, json, scriptedServer } from './testing/scripted-server.js';

const QUICK = { first_ms: 1, max_ms: 2 };
const later = json(503, { code: 'job_store_unavailable', title: 'x', status: 503 });

t.test('an idempotent request is retried until it is answered', async (t) => {
  const { url, seen } = await scriptedServer(t, [breakOff, later, json(429, {}), json(200, { id: 'job_1' })]);
  const client = new Zerofleet({ baseUrl: `${url}/`, apiKey: 'k', retry: QUICK });
  t.strictSame(await client.jobs.get('job_1'), { id: 'job_1' });
  t.strictSame(
    seen.map(({ method, url }) => `${method} ${url}`),
    Array(4).fill('GET /v1/jobs/job_1'),
  );
  t.equal(seen[3]?.headers.authorization, 'Bearer k');
});

t.test('creating a job sends the same key and document on every attempt', async (t) => {
  const { url, seen } = await scriptedServer(t, [breakOff, later, json(201, { id: 'job_1' })]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  const spec = { model: { preset: 'llama-tiny' as const }, data: { dataset: 'ds_1' } };
  await client.jobs.create(spec);
  const keys = new Set(seen.map(({ headers }) => headers['idempotency-key']));
  t.equal(keys.size, 1);
  t.match([...keys], [/^[0-9a-f-]{36}$/]);
  for (const { body } of seen) t.strictSame(JSON.parse(body), spec);
  t.equal(seen.length, 3);
});

t.test('mutating requests carry their own key and are retried', async (t) => {
  const busy = json(409, { code: 'idempotency_key_in_use' }, { 'retry-after': '0' });
  const { url, seen } = await scriptedServer(t, [later, busy, json(200, { id: 'job_1' }), json(200, {})]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  t.strictSame(await client.jobs.cancel('job_1'), { id: 'job_1' });
  await client.jobs.pause('job_1');
  const [first, second, third, next] = seen.map(({ headers }) => headers['idempotency-key']);
  t.match(first, /^[0-9a-f-]{36}$/);
  t.strictSame([second, third], [first, first]);
  t.not(next, first);
});

t.test('a permanent conflict is not retried', async (t) => {
  const { url, seen } = await scriptedServer(t, [
    json(409, { code: 'job_not_resumable', title: 'x', status: 409 }),
  ]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  await t.rejects(client.jobs.resume('job_1'), { name: 'ApiError', code: 'job_not_resumable' });
  t.equal(seen.length, 1);
});

t.test('streamed content is sent once', async (t) => {
  const { url, seen } = await scriptedServer(t, [breakOff]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  await t.rejects(client.datasets.create('d', 'text'), { name: 'ConnectionError' });
  t.equal(seen.length, 1);
  t.equal(seen[0]?.headers['idempotency-key'], undefined);
});

t.test('a sample is not computed again beside the first one', async (t) => {
  const loading = json(503, { code: 'model_loading', title: 'x', status: 503 }, { 'retry-after': '0' });
  const answers = [loading, json(200, { model: 'ckpt_1' }), breakOff, json(504, 'of a proxy'), breakOff];
  const { url, seen } = await scriptedServer(t, answers);
  const { samples } = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  const prompt = { prompt: 'a' };
  t.match(await samples.create('ckpt_1', prompt), { model: 'ckpt_1' });
  await t.rejects(samples.create('ckpt_1', prompt), { name: 'ConnectionError' });
  await t.rejects(samples.create('mdl_1', prompt), { name: 'ApiError', message: /504/ });
  await t.rejects(samples.stream('ckpt_1', prompt).next(), { name: 'ConnectionError' });
  t.equal(seen.length, 5, 'only the refusal that asks for it was sent again');
  t.notOk(seen.some(({ headers }) => 'idempotency-key' in headers));
});

t.test('the last answer counts; no answer is a ConnectionError', async (t) => {
  const { url, seen } = await scriptedServer(t, [later, later]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: { ...QUICK, tries: 2 } });
  await t.rejects(client.jobs.get('job_1'), {
    name: 'ApiError',
    message: 'job job_1: 503 job_store_unavailable: x',
  });
  t.equal(seen.length, 2);
  const listening = createServer().listen(0, '127.0.0.1');
  await once(listening, 'listening');
  const { port } = listening.address() as AddressInfo;
  await once(listening.close(), 'close');
  const unreachable = new Zerofleet({
    baseUrl: `http://127.0.0.1:${port}`,
    apiKey: 'k',
    retry: { ...QUICK, tries: 2 },
  });
  await t.rejects(unreachable.jobs.get('job_1'), ConnectionError);
  await t.rejects(unreachable.jobs.get('job_1'), { message: 'GET /v1/jobs/job_1: no answer (ECONNREFUSED)' });
});

t.test('an answer without a problem document is also an error', async (t) => {
  const { url } = await scriptedServer(t, [json(404, 'nothing here')]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  await t.rejects(client.pools(), { name: 'ApiError', status: 404, code: null, problem: null });
});

t.test('a pause ends when its signal is aborted', async (t) => {
  const { url, seen } = await scriptedServer(t, [json(429, {}, { 'retry-after': '600' })]);
  const client = new Zerofleet({ baseUrl: url, apiKey: 'k', retry: QUICK });
  const abort = new AbortController();
  const job = client.jobs.get('job_1', { signal: abort.signal });
  while (seen.length === 0) await new Promise(setImmediate);
  abort.abort();
  await t.rejects(job, { name: 'AbortError' });
});

/** A server in a thread of its own: it closes each connection soon after its answer, also while this thread is busy. */
const CLOSING_SERVER = `
const { parentPort } = require('node:worker_threads');
const answer = 'HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: 2\\r\\n\\r\\n{}';
const server = require('node:net').createServer((socket) => {
  socket.on('error', () => undefined);
  socket.on('data', () => {
    socket.write(answer);
    setTimeout(() => socket.end(), 20);
  });
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

t.test('a request that cannot be repeated does not go out on a closed connection', async (t) => {
  const server = new Worker(CLOSING_SERVER, { eval: true });
  t.teardown(() => server.terminate());
  const [port] = (await once(server, 'message')) as [number];
  const client = new Zerofleet({ baseUrl: `http://127.0.0.1:${port}`, apiKey: 'k', retry: QUICK });
  const clock = new Int32Array(new SharedArrayBuffer(4));
  for (let round = 0; round < 6; round++) {
    await client.jobs.get('job_1');
    // This thread is busy while the connection is closed.
    Atomics.wait(clock, 0, 0, 100);
    await client.samples.create('ckpt_1', { prompt: 'a' });
  }
  t.pass('each request was answered');
});
