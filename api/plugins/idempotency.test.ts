/** The plugin alone, with a test operation and a scripted job store. */
import { Readable } from 'node:stream';
import { mock } from 'node:test';
import Fastify, { type InjectOptions } from 'fastify';
import fp from 'fastify-plugin';
import t, { type Test } from 'tap';
import type { OperationId, Problem } from '../../contracts/index.js';
import type { BegunRequest, KeyedRequest, StoredReply } from '../../state/index.js';
import errors from './errors.js';
import idempotency from './idempotency.js';

interface Ended {
  request: KeyedRequest;
  reply: StoredReply | null;
}

interface SetupOptions {
  begun?: () => Promise<BegunRequest>;
  endRequest?: () => Promise<boolean>;
  operationId?: OperationId;
  isKeyed?: boolean;
  hasOperation?: boolean;
  project?: string | null;
  handler?: () => unknown;
  /** It answers without content. */
  isEmpty?: boolean;
}

async function setup(t: Test, options: SetupOptions = {}) {
  const begins: { request: KeyedRequest; lease_ms: number }[] = [];
  const ends: Ended[] = [];
  const kept: { request: KeyedRequest; lease_ms: number }[] = [];
  let handled = 0;
  const store = {
    beginRequest: async (request: KeyedRequest, leaseMs: number): Promise<BegunRequest> => {
      begins.push({ request, lease_ms: leaseMs });
      return options.begun ? options.begun() : { state: 'begun' };
    },
    keepRequest: async (request: KeyedRequest, leaseMs: number) =>
      kept.push({ request, lease_ms: leaseMs }) > 0,
    endRequest: async (request: KeyedRequest, reply: StoredReply | null) => {
      ends.push({ request, reply });
      return options.endRequest ? options.endRequest() : true;
    },
  };
  const app = Fastify();
  t.teardown(() => app.close());
  await app.register(errors);
  await app.register(
    fp(
      async (inner) => {
        inner.decorate('services', { store } as never);
        inner.decorateRequest('principal', null);
        inner.decorateRequest('operation', null);
        inner.addHook('onRequest', async (request) => {
          request.operation = request.routeOptions.config.operation ?? null;
          const project = options.project === undefined ? 'team-a' : options.project;
          request.principal = project === null ? null : ({ project } as never);
        });
      },
      { name: 'services' },
    ),
  );
  await app.register(idempotency);
  // The answer is sent some event loop turns later, as in the server: the request must not continue until then.
  app.addHook('onSend', async (_request, _reply, payload) => {
    await new Promise(setImmediate);
    return payload;
  });
  app.addContentTypeParser('application/x-tar', (_request, payload, done) => done(null, payload));
  const operation = { operationId: options.operationId ?? 'createApiKey', isKeyed: options.isKeyed ?? true };
  const config = (options.hasOperation === false ? {} : { operation }) as never;
  app.post('/v1/things/:id', { config }, async (request, reply) => {
    handled += 1;
    if (request.body instanceof Readable) for await (const _ of request.body);
    if (options.isEmpty) return reply.code(204).send();
    const answer = options.handler?.() ?? { id: 'x' };
    reply.code(201).header('location', '/v1/things/x').header('etag', '"1"').header('x-other', 'y');
    return answer;
  });
  const send = (more: InjectOptions = {}) =>
    app.inject({
      method: 'POST',
      url: '/v1/things/a?q=1',
      payload: { n: 1 },
      ...more,
      headers: { 'idempotency-key': 'k', ...more.headers },
    });
  return { app, send, begins, ends, kept, handled: () => handled };
}

const DONE = (changes: Partial<StoredReply> = {}) => ({
  begun: async (): Promise<BegunRequest> => ({
    state: 'done',
    reply: {
      status: 201,
      headers: { 'content-type': 'application/json; charset=utf-8', location: '/v1/things/x' },
      body: '{"id":"first"}',
      has_secret: false,
      ...changes,
    },
  }),
});

t.test('a request acquires its key before it is executed, and stores its answer', async (t) => {
  const { send, begins, ends, handled } = await setup(t, { operationId: 'updateJob' });
  const reply = await send();
  t.match(reply, { statusCode: 201, body: '{"id":"x"}' });
  t.equal(reply.headers['idempotent-replayed'], undefined);
  t.equal(handled(), 1);
  t.match(begins, [{ request: { scope: 'team-a:updateJob', key: 'k', token: /\w/ }, lease_ms: 30_000 }]);
  t.strictSame(ends, [
    {
      request: begins[0]?.request,
      reply: {
        status: 201,
        headers: {
          'content-type': 'application/json; charset=utf-8',
          location: '/v1/things/x',
          etag: '"1"',
        },
        body: '{"id":"x"}',
        has_secret: false,
      },
    },
  ]);
});

t.test('requests are equal by path, query and body, not by API key', async (t) => {
  const { send, begins } = await setup(t);
  const hash = async (more: InjectOptions) => {
    await send(more);
    return begins.at(-1)?.request.body_hash;
  };
  const first = await hash({});
  t.equal(await hash({ payload: '{ "n": 1 }', headers: { 'content-type': 'application/json' } }), first);
  const others = [
    await hash({ payload: { n: 2 } }),
    await hash({ url: '/v1/things/b?q=1' }),
    await hash({ url: '/v1/things/a?q=2' }),
  ];
  t.equal(new Set([first, ...others]).size, 4);
  t.equal(new Set(begins.map(({ request }) => request.token)).size, begins.length, 'each has its own token');
});

t.test('uploads are distinguished by their parameters', async (t) => {
  const { send, begins } = await setup(t);
  const headers = { 'content-type': 'application/x-tar' };
  const hash = async (payload: string | Readable, more = {}) => {
    await send({ payload, headers: { ...headers, ...more } });
    return begins.at(-1)?.request.body_hash;
  };
  const first = await hash('abc');
  t.equal(await hash('abd'), first, 'its bytes are not read for that');
  const others = [
    await hash('abcd'),
    await hash('abc', { 'content-type': 'application/x-tar; x=1' }),
    await hash(Readable.from(['abc'])),
  ];
  t.equal(new Set([first, ...others]).size, 4);
});

t.test('a repetition gets the first answer and is not executed', async (t) => {
  const { send, ends, handled } = await setup(t, DONE());
  const reply = await send();
  t.match(reply, {
    statusCode: 201,
    body: '{"id":"first"}',
    headers: {
      'idempotent-replayed': 'true',
      location: '/v1/things/x',
      'content-type': /^application\/json/,
    },
  });
  t.equal(handled(), 0);
  t.strictSame(ends, [], 'it holds nothing');
});

t.test('the repetition of an empty answer is empty', async (t) => {
  for (const status of [202, 204]) {
    const { send } = await setup(t, DONE({ status, headers: {}, body: '' }));
    const reply = await send();
    t.match(reply, { statusCode: status, body: '', headers: { 'idempotent-replayed': 'true' } });
    t.equal(reply.headers['content-type'], undefined);
  }
  const first = await setup(t, { operationId: 'deleteJob', isEmpty: true });
  await first.send();
  t.strictSame(first.ends[0]?.reply, { status: 204, headers: {}, body: '', has_secret: false });
});

t.test('a secret is not shown again', async (t) => {
  const { send, handled } = await setup(t, DONE({ has_secret: true, body: '' }));
  const reply = await send();
  t.match(reply.json<Problem>(), {
    code: 'response_not_repeatable',
    detail: /executed, see \/v1\/things\/x;/,
  });
  t.equal(handled(), 0);
  const nameless = await setup(t, DONE({ has_secret: true, headers: {}, body: '' }));
  t.match((await nameless.send()).json<Problem>(), { detail: /executed;/ });
});

t.test('an answer that shows a secret is not stored', async (t) => {
  for (const operationId of [
    'createApiKey',
    'rotateApiKey',
    'createWebhook',
    'rotateWebhookSecret',
  ] as const) {
    const { send, ends } = await setup(t, { operationId });
    t.equal((await send()).body, '{"id":"x"}');
    t.match(ends, [{ reply: { body: '', has_secret: true, headers: { location: '/v1/things/x' } } }]);
  }
});

t.test('a repetition of a running request is told to retry', async (t) => {
  const { send, ends, handled } = await setup(t, { begun: async () => ({ state: 'running' }) });
  const reply = await send();
  t.match(reply.json<Problem>(), { code: 'idempotency_key_in_use', status: 409 });
  t.equal(handled(), 0);
  t.strictSame(ends, [], 'the key belongs to the other request');
});

t.test('a refused upload is not read to its end', async (t) => {
  const cases: [SetupOptions, string | undefined][] = [
    [{ begun: async () => ({ state: 'running' }) }, 'close'],
    [DONE(), 'close'],
    [{}, undefined],
  ];
  for (const [options, connection] of cases) {
    const { send } = await setup(t, options);
    const upload = await send({ payload: 'abc', headers: { 'content-type': 'application/x-tar' } });
    t.equal(upload.headers.connection === 'close' ? 'close' : undefined, connection);
    t.not((await send()).headers.connection, 'close', 'a document has been read');
  }
});

t.test('a refused or failed request frees its key', async (t) => {
  const { send, ends } = await setup(t, {
    handler: () => {
      throw Object.assign(new Error('no'), { statusCode: 400 });
    },
  });
  t.equal((await send()).statusCode, 400);
  t.match(ends, [{ reply: null }]);
  t.equal(ends.length, 1);
});

t.test('an answer that cannot be stored is sent anyway', async (t) => {
  const { send } = await setup(t, { endRequest: () => Promise.reject(new Error('away')) });
  t.match(await send(), { statusCode: 201, body: '{"id":"x"}' });
});

t.test('a request whose key cannot be acquired is not executed', async (t) => {
  const { send, handled } = await setup(t, { begun: () => Promise.reject(new Error('away')) });
  t.equal((await send()).statusCode, 500);
  t.equal(handled(), 0);
});

t.test('requests without idempotency', async (t) => {
  const cases: SetupOptions[] = [
    { isKeyed: false },
    { operationId: 'createJob' },
    { operationId: 'forkJob' },
    { hasOperation: false },
    { project: null },
  ];
  for (const options of cases) {
    const { send, begins, ends, handled } = await setup(t, options);
    t.equal((await send()).statusCode, 201);
    t.strictSame([begins, ends], [[], []], JSON.stringify(options));
    t.equal(handled(), 1);
  }
  const { app, begins, ends } = await setup(t);
  t.equal((await app.inject({ method: 'POST', url: '/v1/things/a', payload: {} })).statusCode, 201);
  t.strictSame([begins, ends], [[], []], 'no key was sent');
});

t.test('a long request renews its lease while it runs', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] });
  t.teardown(() => mock.timers.reset());
  const { send, kept } = await setup(t, {
    handler: () => {
      mock.timers.tick(9_999);
      t.equal(kept.length, 0);
      mock.timers.tick(1);
      t.equal(kept.length, 1);
      mock.timers.tick(20_000);
      return { id: 'x' };
    },
  });
  await send();
  t.equal(kept.length, 3);
  t.match(kept[0], { request: { key: 'k' }, lease_ms: 30_000 });
  mock.timers.tick(60_000);
  t.equal(kept.length, 3, 'and then stops');
});
