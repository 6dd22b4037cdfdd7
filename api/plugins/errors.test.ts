import { connect } from 'node:net';
import Fastify from 'fastify';
import t from 'tap';
import { ERROR_CATALOGUE, type ErrorCode, type Problem, ZerofleetError } from '../../contracts/index.js';
import { ObjectStoreError } from '../../platform/object-store/index.js';
import { startTestStack } from '../testing/stack.js';
import errors from './errors.js';

t.test(
  'every code of the catalogue becomes its problem document, and a 5xx discloses no internals',
  async (t) => {
    const app = Fastify();
    await app.register(errors);
    app.get('/:code', async (request) => {
      const { code } = request.params as { code: ErrorCode };
      throw new ZerofleetError(code, 'inner message', {
        details: { password: 'secret' },
        cause: new Error('secret'),
      });
    });
    for (const [code, { status, title, retryable }] of Object.entries(ERROR_CATALOGUE)) {
      const reply = await app.inject({ url: `/${code}` });
      t.equal(reply.statusCode, status, code);
      t.match(reply.headers['content-type'], /^application\/problem\+json/);
      const problem = reply.json<Problem>();
      t.match(problem, { type: `urn:zerofleet:error:${code}`, title, status, code, retryable, errors: [] });
      t.ok(problem.request_id);
      t.equal(reply.body.includes('inner message'), status < 500, code);
      t.notOk(reply.body.includes('secret'));
      t.equal(reply.headers['retry-after'] !== undefined, retryable, code);
    }
  },
);

t.test('errors of other kinds', async (t) => {
  const app = Fastify();
  await app.register(errors);
  const thrown: Record<string, unknown> = {
    plain: new TypeError('secret'),
    text: 'secret',
    object_store: new ObjectStoreError('disk_full', 'secret'),
    status: Object.assign(new Error('too odd'), { statusCode: 418 }),
  };
  app.get('/:name', async (request) => {
    throw thrown[(request.params as { name: string }).name];
  });
  const codeOf = async (name: string) => {
    const reply = await app.inject({ url: `/${name}` });
    t.notMatch(reply.body, /secret/);
    return reply.json<Problem>().code;
  };
  t.equal(await codeOf('plain'), 'internal_error');
  t.equal(await codeOf('text'), 'internal_error');
  t.equal(await codeOf('object_store'), 'disk_full');
  t.equal(await codeOf('status'), 'bad_request');
});

t.test('requests that reach no handler', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const code = async (method: 'GET' | 'PUT', url: string) => {
    const reply = await stack.app.inject({ method, url });
    t.match(reply.headers['content-type'], /^application\/problem\+json/, url);
    return reply.json<Problem>().code;
  };
  t.equal(await code('GET', '/v1/nothing'), 'route_not_found');
  t.equal(await code('PUT', '/v1/jobs'), 'method_not_allowed');
  t.equal(await code('GET', '/v1/jobs/%zz'), 'bad_request');
  t.equal(await code('GET', `/v1/jobs/${'x'.repeat(5000)}`), 'bad_request');
});

t.test('invalid HTTP is answered and ends the connection', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { port } = new URL(await stack.listen());
  const socket = connect(Number(port), '127.0.0.1');
  socket.end('nonsense\r\n\r\n');
  let reply = '';
  for await (const piece of socket) reply += piece;
  t.match(reply, /^HTTP\/1.1 400/);
});
