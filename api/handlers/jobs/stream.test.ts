import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import t from 'tap';
import type { Job } from '../../../contracts/index.js';
import type { JobStore } from '../../../state/index.js';
import { openStream, type SseClient, type SseClientMessage } from '../../testing/sse-client.js';
import { ADMIN_KEY, startTestStack } from '../../testing/stack.js';
import { claimAndTrain, metricOf, progressOf } from '../../testing/training.js';

const HEARTBEAT_MS = 100;
/** Batches of 1000 metrics; each takes two reads of the store. */
const BATCHES = 100;

t.test('the stream of a job', async (t) => {
  let reads = 0;
  const stack = await startTestStack({
    limits: { heartbeat_ms: HEARTBEAT_MS },
    wrap: ({ store }) => ({ store: countReads(store, () => (reads += 1)) }),
  });
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const open = (job: Job, lastEventId?: string): Promise<SseClient> =>
    openStream(`${base}/v1/jobs/${job.id}/stream`, ADMIN_KEY, lastEventId);

  t.test('a finished job: all entries, then the end, then the connection closes', async (t) => {
    const job = await stack.createJob();
    await claimAndTrain(stack.store, job.id, { steps: 5, finish: true });
    const client = await open(job);
    t.match(client.contentType, /^text\/event-stream/);
    const messages = await client.rest();
    const items = messages.slice(0, -1);
    t.same(
      items.map(({ data }) => data.seq),
      items.map((_, index) => index + 1),
    );
    t.same(
      items.filter((m) => m.event === 'metric').map((m) => m.data.step),
      [1, 2, 3, 4, 5],
    );
    t.ok(
      items.every((message) => message.data.position === message.id && message.data.kind === message.event),
    );
    t.match(messages.at(-1), { event: 'end', data: { state: 'succeeded' } });
  });

  t.test('Last-Event-ID resumes after any message, without gaps or repetitions', async (t) => {
    const job = await stack.createJob();
    await claimAndTrain(stack.store, job.id, { steps: 6, finish: true });
    const all = await (await open(job)).rest();
    for (let cut = 0; cut < all.length; cut += 1) {
      t.same(await (await open(job, all[cut - 1]?.id)).rest(), all.slice(cut), `after ${cut}`);
    }
  });

  t.test('entries arrive live, across broken connections', async (t) => {
    const job = await stack.createJob();
    const execution = await claimAndTrain(stack.store, job.id, { steps: 1 });
    const seen: SseClientMessage[] = [];
    for (let step = 2; step <= 8; step += 2) {
      const client = await open(job, seen.at(-1)?.id);
      await stack.store.report(job.id, execution, [metricOf(step)], progressOf(step, 10), { batch: step });
      await client.until(
        (message) => message.data.step === step,
        (message) => seen.push(message),
      );
      client.close();
      await stack.store.report(job.id, execution, [metricOf(step + 1)], progressOf(step + 1, 10), {
        batch: step + 1,
      });
    }
    const client = await open(job, seen.at(-1)?.id);
    await stack.store.finishJob(job.id, execution, 'succeeded');
    const rest = await client.rest();
    seen.push(...rest.slice(0, -1));
    t.same(
      seen.map(({ data }) => data.seq),
      seen.map((_, index) => index + 1),
    );
    t.equal(rest.at(-1)?.event, 'end');
  });

  t.test('a job that ends between the reads of its record and its stream', { timeout: 60_000 }, async (t) => {
    let end: (() => Promise<unknown>) | undefined;
    const slow = await startTestStack({
      wrap: ({ store }) => ({
        store: {
          ...store,
          async readStream(...args) {
            await end?.();
            end = undefined;
            return store.readStream(...args);
          },
        },
      }),
    });
    t.teardown(() => slow.close());
    const job = await slow.createJob();
    const epoch = await claimAndTrain(slow.store, job.id, { steps: 1 });
    end = () => slow.store.finishJob(job.id, epoch, 'succeeded');
    const client = await openStream(`${await slow.listen()}/v1/jobs/${job.id}/stream`, ADMIN_KEY);
    t.equal(
      (await client.rest()).at(-1)?.event,
      'end',
      'the end is sent immediately, without waiting for a heartbeat',
    );
  });

  t.test('a quiet stream sends heartbeats', async (t) => {
    const job = await stack.createJob();
    const client = await open(job);
    while (client.comments < 3) await sleep(10);
    client.close();
    t.pass('three heartbeats');
  });

  t.test('a stalled reader slows its own stream', async (t) => {
    const job = await stack.createJob();
    const claim = await stack.store.claimAttempt(job.id, 1, 'w', 60_000);
    if (!claim.granted) throw new Error(claim.code);
    // About 30 MB: more than the buffers of a connection take.
    for (let batch = 1; batch <= BATCHES; batch += 1) {
      const metrics = Array.from({ length: 1000 }, (_, index) => metricOf((batch - 1) * 1000 + index + 1));
      await stack.store.report(job.id, claim.execution, metrics, null, { batch });
    }
    reads = 0;
    const client = await open(job);
    client.pause();
    let before = -1;
    while (before !== reads) {
      before = reads;
      await sleep(4 * HEARTBEAT_MS);
    }
    t.ok(reads < BATCHES * 1.5, `${reads} reads of the ${BATCHES * 2} that the whole stream takes`);
    client.resume();
    await client.until((message) => message.data.step === BATCHES * 1000);
    t.ok(reads >= BATCHES * 2);
    client.close();
  });

  t.test('a closed connection stops the reading', async (t) => {
    const job = await stack.createJob();
    const client = await open(job);
    while (client.comments < 1) await sleep(10);
    client.close();
    while ((await openStreams(stack.app)) > 0) await sleep(10);
    await sleep(3 * HEARTBEAT_MS);
    reads = 0;
    await sleep(5 * HEARTBEAT_MS);
    t.equal(reads, 0);
  });
});

t.test('a shutdown ends open streams', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const job = await stack.createJob();
  const client = await openStream(`${base}/v1/jobs/${job.id}/stream`, ADMIN_KEY);
  const rest = client.rest();
  await stack.app.close();
  t.notOk(
    (await rest).some((message) => message.event === 'end'),
    'the job has not ended',
  );
});

t.test('a client that disconnects before its stream begins leaves none behind', async (t) => {
  let [ask, look] = [() => {}, () => {}];
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  const looked = new Promise<void>((resolve) => {
    look = resolve;
  });
  let gone: Promise<unknown> = Promise.resolve();
  const stack = await startTestStack({
    wrap: ({ store }) => ({
      store: {
        ...store,
        async findPrincipal(secret) {
          ask();
          await gone;
          return store.findPrincipal(secret);
        },
        async getJob(id) {
          look();
          return store.getJob(id);
        },
      },
    }),
  });
  t.teardown(() => stack.close());
  const { port } = new URL(await stack.listen());
  stack.app.server.once('connection', (socket: Socket) => {
    gone = once(socket, 'close');
  });
  const socket = connect(Number(port), '127.0.0.1');
  const path = `/v1/jobs/job_${'0'.repeat(26)}/stream`;
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ADMIN_KEY}\r\n\r\n`);
  await asked;
  socket.destroy();
  await looked;
  t.equal(await openStreams(stack.app), 0);
});

// Their connections are kept alive for 72 seconds; a server that waited for them would not be closed by then.
t.test('a shutdown spreads the reconnect delays of clients', { timeout: 45_000 }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const job = await stack.createJob();
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const watch = async () => (await fetch(`${base}/v1/jobs/${job.id}/stream`, { headers })).text();
  const watched = Promise.all(Array.from({ length: 20 }, watch));
  while ((await openStreams(stack.app)) < 20) await sleep(10);
  await stack.app.close();
  const waits = (await watched).map((text) => {
    const hints = [...text.matchAll(/^retry: (\d+)$/gm)].map(([, ms]) => Number(ms));
    t.match(text, /\nretry: \d+\n\n$/, 'it is the last message');
    t.equal(hints[0], 1000);
    return hints.at(-1) ?? 0;
  });
  t.ok(
    waits.every((ms) => ms >= 50 && ms <= 500),
    String(waits),
  );
  t.ok(new Set(waits).size > 5, 'they differ');
});

t.test('a request on an open connection while the server shuts down', async (t) => {
  let finish: (job: null) => void = () => undefined;
  const slow = new Promise<null>((resolve) => {
    finish = resolve;
  });
  const stack = await startTestStack({ wrap: ({ store }) => ({ store: { ...store, getJob: () => slow } }) });
  t.teardown(() => stack.close());
  const { port } = new URL(await stack.listen());
  const socket = connect(Number(port), '127.0.0.1').setEncoding('utf8');
  const ask = () =>
    socket.write(
      `GET /v1/jobs/job_${'0'.repeat(26)} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ADMIN_KEY}\r\n\r\n`,
    );
  const received = new Promise<string>((resolve) => {
    let text = '';
    socket.on('data', (piece) => (text += piece));
    socket.on('close', () => resolve(text));
  });
  ask();
  await once(stack.app.server, 'request');
  const closed = stack.app.close();
  while (!stack.app.services.closing.aborted) await sleep(5);
  ask();
  finish(null);
  await closed;
  const text = await received;
  t.match(text, /"code":"job_not_found"/, 'the open request is answered');
  t.match(text, /HTTP\/1.1 503 [\s\S]*"code":"shutting_down"/);
});

function countReads(store: JobStore, count: () => void): JobStore {
  const readStream: JobStore['readStream'] = (...args) => {
    count();
    return store.readStream(...args);
  };
  return { ...store, readStream };
}

async function openStreams({ services }: FastifyInstance): Promise<number> {
  const { text } = await services.metrics.scrape([]);
  return Number(/zerofleet_api_open_streams (\d+)/.exec(text)?.[1]);
}
