/** Who sends a request to the translated API is known before its body is read, and every request is counted. */
import { connect } from 'node:net';
import t, { type Test } from 'tap';
import { ADMIN_KEY, startTestStack, type TestStackOptions } from '../testing/stack.js';

async function setup(t: Test, options?: TestStackOptions) {
  const stack = await startTestStack(options);
  t.teardown(() => stack.close());
  return stack;
}

/** Sends the beginning of a body, and returns the answer until the connection is closed. */
async function beginBody(port: string, path: string, headers: readonly string[]): Promise<string> {
  const socket = connect(Number(port), '127.0.0.1').setEncoding('utf8');
  const head = [`POST /openai/v1/${path} HTTP/1.1`, 'host: x', 'content-length: 900000', ...headers];
  socket.write(`${head.join('\r\n')}\r\n\r\n{`);
  let text = '';
  for await (const piece of socket) text += piece;
  return text;
}

t.test('without a key nothing is answered, and no body is read', async (t) => {
  const stack = await setup(t);
  const { port } = new URL(await stack.listen());
  const paths = ['files', 'uploads', 'uploads/a/parts', 'uploads/a/complete', 'uploads/a/cancel'];
  paths.push('fine_tuning/jobs', 'fine_tuning/jobs/a/cancel', 'chat/completions', 'completions');
  paths.push('embeddings', '../other');
  for (const path of paths)
    for (const type of ['application/json', 'multipart/form-data; boundary=a']) {
      const text = await beginBody(port, path, [`content-type: ${type}`]);
      t.match(text, /^HTTP\/1.1 401[\s\S]*"code":"unauthenticated"/, path);
      t.match(text, /^connection: close/im, path);
    }
  for (const path of ['files?purpose=x', 'files', 'models', 'fine_tuning/jobs', 'nothing']) {
    const reply = await stack.app.inject({ url: `/openai/v1/${path}` });
    t.equal(reply.statusCode, 401, path);
    t.match(reply.headers['www-authenticate'], /^Bearer/);
  }
});

t.test('a key that may not ask is refused before the body is read', async (t) => {
  const stack = await setup(t);
  const { port } = new URL(await stack.listen());
  const { authorization } = await stack.headersOf('jobs:read', 'models');
  const headers = ['content-type: application/json', `authorization: ${authorization}`];
  for (const path of ['chat/completions', 'completions', 'uploads/a/complete'])
    t.match(await beginBody(port, path, headers), /^HTTP\/1.1 403[\s\S]*"code":"insufficient_scope"/, path);
});

t.test('a session is no key', async (t) => {
  const { app } = await setup(t);
  const began = await app.inject({ method: 'POST', url: '/v1/sessions', payload: { token: ADMIN_KEY } });
  const [cookie = ''] = String(began.headers['set-cookie']).split(';');
  const headers = { cookie, 'x-zerofleet-console': '1' };
  t.equal((await app.inject({ url: '/v1/me', headers })).statusCode, 200);
  for (const path of ['chat/completions', 'completions', 'uploads/a/cancel', 'files']) {
    const reply = await app.inject({ method: 'POST', url: `/openai/v1/${path}`, headers });
    t.match(reply, { statusCode: 401 }, path);
  }
});

t.test('refused requests are counted for their address', async (t) => {
  const { app } = await setup(t, { limits: { requests_per_minute: 3 } });
  const url = '/openai/v1/chat/completions';
  const ask = () => app.inject({ method: 'POST', url, payload: { model: 1 } });
  const statuses = [];
  for (let n = 0; n < 3; n += 1) statuses.push((await ask()).statusCode);
  t.same(statuses, [401, 401, 401]);
  t.equal((await ask()).statusCode, 429);
});

t.test('a key above its limit is told when to ask again', async (t) => {
  const { app } = await setup(t, { limits: { requests_per_minute: 2 } });
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const ask = (url: string) => app.inject({ url: `/openai/v1/${url}`, headers });
  const first = await ask('files');
  t.equal(first.statusCode, 200);
  t.match(first.headers, { 'ratelimit-limit': '2', 'ratelimit-remaining': '1' });
  t.equal((await ask('files')).statusCode, 200);
  const refused = await ask('files');
  t.equal(refused.statusCode, 429);
  const { 'retry-after': seconds, ...limits } = refused.headers;
  t.match(limits, { 'ratelimit-limit': '2', 'ratelimit-remaining': '0', 'ratelimit-reset': seconds });
  const { error } = refused.json<{ error: object }>();
  t.match(error, { type: 'rate_limit_error', code: 'rate_limited', message: new RegExp(`in ${seconds} s`) });
});

t.test('a path that cannot be read is refused in the shape of this API', async (t) => {
  const { app } = await setup(t);
  for (const path of ['v1/files/%ff', `v1/files/${'a'.repeat(65)}`, 'v1/%E0%A4%A', 'other/%ff']) {
    const reply = await app.inject({ url: `/openai/${path}` });
    t.equal(reply.statusCode, 400, path);
    t.match(reply.headers, { 'content-type': /^application\/json/, 'x-request-id': /^req_/ }, path);
    t.match(reply.json(), { error: { type: 'invalid_request_error', code: 'bad_request' } }, path);
  }
});
