/** Answers that take long: the connection stays, and the answer ends when the client leaves. */
import type { Socket } from 'node:net';
import t, { type Test } from 'tap';
import type { SampleReply } from '../../../contracts/index.js';
import { SSE_HEARTBEAT } from '../../http/sse.js';
import type { SampleCall } from '../../services.js';
import { ADMIN_KEY, startTestStack, type TestStackOptions, withMethod } from '../../testing/stack.js';
import { servedCheckpoint } from '../../testing/training.js';

const choices = [{ index: 0, text: 'yes', finish_reason: 'stop' as const, logprobs: [] }];
const usage = { prompt_tokens: 1, cached_tokens: 0, completion_tokens: 1 };
const ANSWER: SampleReply = { ok: true, sample: { prompt: 'p', choices, usage } };

/** A stack with a worker that answers when the test says so. */
async function setup(t: Test, heartbeatMs: number, wrap?: TestStackOptions['wrap']) {
  const calls: SampleCall[] = [];
  let answer: (reply: SampleReply) => void = () => undefined;
  const answered = new Promise<SampleReply>((resolve) => {
    answer = resolve;
  });
  const stack = await startTestStack({
    limits: { heartbeat_ms: heartbeatMs },
    ...(wrap && { wrap }),
    samples: {
      sample: async (_, __, call) => {
        calls.push(call);
        void answered.then(() => call.onDeltas?.([{ index: 0, text: 'yes', logprobs: [] }]));
        const left = new Promise<never>((_, reject) => {
          call.signal.addEventListener('abort', () => reject(call.signal.reason as Error));
        });
        return Promise.race([answered, left]);
      },
    },
  });
  t.teardown(() => stack.close());
  const sockets: Socket[] = [];
  stack.app.server.on('connection', (socket) => sockets.push(socket));
  const { checkpoint, job } = await servedCheckpoint(stack);
  const base = await stack.listen();
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' };
  const model = `ft:tiny:default::${checkpoint.id}`;
  const requests: Record<string, [path: string, body: object]> = {
    sample: [`/v1/checkpoints/${checkpoint.id}/sample`, { prompt: 'p' }],
    chat: ['/openai/v1/chat/completions', { model, messages: [{ role: 'user', content: 'p' }] }],
    completion: ['/openai/v1/completions', { model, prompt: 'p' }],
  };
  const send = (name: string, more: object = {}, signal: AbortSignal | null = null) => {
    const [path, body] = requests[name] ?? ['', {}];
    const content = JSON.stringify({ ...body, ...more });
    return fetch(base + path, { method: 'POST', headers, body: content, signal });
  };
  const begun = async () => {
    while (calls.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    return calls.shift() as SampleCall;
  };
  return { stack, base, headers, job, sockets, send, begun, answer: () => answer(ANSWER) };
}

/** Reads a stream until it has this many heartbeats. */
async function readHeartbeats(response: Response, count: number) {
  const reader = (response.body as ReadableStream<Uint8Array>)
    .pipeThrough(new TextDecoderStream())
    .getReader();
  let text = '';
  while (text.split(SSE_HEARTBEAT).length <= count) {
    const { value, done } = await reader.read();
    if (done) break;
    text += value;
  }
  const rest = async () => {
    let more = '';
    for (let read = await reader.read(); !read.done; read = await reader.read()) more += read.value;
    return more;
  };
  return { heartbeats: text.split(SSE_HEARTBEAT).length - 1, rest, leave: () => reader.cancel() };
}

t.test('streams say something while nothing is generated', async (t) => {
  const { send, begun, answer } = await setup(t, 5);
  const open = [];
  for (const name of ['sample', 'chat', 'completion']) {
    const response = send(name, { stream: true });
    (await begun()).onStart?.();
    open.push({ name, read: await readHeartbeats(await response, 4) });
  }
  answer();
  for (const { name, read } of open) {
    t.ok(read.heartbeats >= 4, name);
    t.match(await read.rest(), /yes/, name);
  }
});

t.test('the stream of events of a job, too', async (t) => {
  const { base, headers, job } = await setup(t, 5);
  const url = `${base}/openai/v1/fine_tuning/jobs/${job.id}/events?stream=true`;
  const { heartbeats, leave } = await readHeartbeats(await fetch(url, { headers }), 4);
  t.ok(heartbeats >= 4);
  await leave();
});

t.test('a whole answer may be silent for any time', async (t) => {
  const { stack, send, begun, sockets, answer } = await setup(t, 600_000);
  t.ok(stack.app.server.keepAliveTimeout > stack.app.server.timeout, 'an unused connection stays for longer');
  const open = [];
  for (const [index, name] of ['sample', 'chat', 'completion'].entries()) {
    open.push(send(name));
    (await begun()).onStart?.();
    t.equal(sockets.filter(({ timeout }) => timeout === 0).length, index + 1, name);
  }
  answer();
  for (const response of await Promise.all(open)) t.match(await response.text(), /yes/);
  t.equal(sockets.filter(({ timeout }) => timeout === 0).length, 0);
});

t.test('a client that leaves before the first token ends its answer', async (t) => {
  const { send, begun } = await setup(t, 600_000);
  for (const name of ['sample', 'chat', 'completion'])
    for (const stream of [false, true])
      for (const starts of [false, true]) {
        const gone = new AbortController();
        const response = send(name, { stream }, gone.signal);
        const call = await begun();
        if (starts) call.onStart?.();
        const left = new Promise((resolve) => call.signal.addEventListener('abort', resolve));
        gone.abort();
        await t.rejects(response.then((answer) => answer.text()));
        await left;
        t.match(call.signal.reason, { message: /client/ }, `${name}, stream ${stream}, started ${starts}`);
      }
});

t.test('a client that leaves a file ends its reading', async (t) => {
  let ended: () => void = () => undefined;
  const end = new Promise<void>((resolve) => {
    ended = resolve;
  });
  async function* endless() {
    try {
      for (;;) yield Buffer.alloc(16 * 1024);
    } finally {
      ended();
    }
  }
  const { base, headers, job } = await setup(t, 600_000, ({ objects }) => ({
    objects: withMethod(objects, 'stream', async (...args) =>
      args[0].startsWith('datasets/') ? endless() : objects.stream(...args),
    ),
  }));
  const gone = new AbortController();
  const url = `${base}/openai/v1/files/${job.spec.data.dataset}/content`;
  const response = await fetch(url, { headers, signal: gone.signal });
  await response.body?.getReader().read();
  gone.abort();
  await end;
});
