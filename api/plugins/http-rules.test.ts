/** HTTP semantics besides the operations. */
import { connect } from 'node:net';
import { gunzipSync, gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import type { Problem } from '../../contracts/index.js';
import { ADMIN_KEY, startTestStack, type TestStackOptions } from '../testing/stack.js';
import { claimAndTrain } from '../testing/training.js';

async function start(t: Test, options?: TestStackOptions) {
  const stack = await startTestStack(options);
  t.teardown(() => stack.close());
  return stack;
}

const JSON_TYPE = { 'content-type': 'application/json' };

t.test('a wrong method gets the allowed ones', async (t) => {
  const { request } = await start(t);
  const expected: [string, string, string][] = [
    ['PUT', '/v1/jobs', 'GET, HEAD, POST'],
    ['POST', `/v1/jobs/job_${'0'.repeat(26)}`, 'DELETE, GET, HEAD, PATCH'],
    ['GET', `/v1/jobs/job_${'0'.repeat(26)}/pause`, 'POST'],
    ['DELETE', '/healthz', 'GET, HEAD'],
    ['POST', '/', 'GET, HEAD'],
    ['POST', '/docs/json', 'GET, HEAD'],
  ];
  for (const [method, url, allow] of expected) {
    const reply = await request({ method: method as 'PUT', url });
    t.match(reply.json<Problem>(), { status: 405, code: 'method_not_allowed' }, `${method} ${url}`);
    t.equal(reply.headers.allow, allow, `${method} ${url}`);
  }
  t.match((await request({ method: 'PUT', url: '/v1/nothing' })).json(), { code: 'route_not_found' });
});

t.test('HEAD is GET without the content', async (t) => {
  const { request, createJob, store } = await start(t);
  const job = await createJob();
  for (const url of ['/healthz', '/', `/v1/jobs/${job.id}`, '/v1/jobs', '/openapi.yaml']) {
    const [head, get] = [await request({ method: 'HEAD', url }), await request({ url })];
    t.equal(head.statusCode, get.statusCode, url);
    t.equal(head.body, '', url);
    for (const name of ['content-type', 'content-length', 'etag'])
      t.equal(head.headers[name], get.headers[name], `${url} ${name}`);
  }
  // A training job, whose stream would never end.
  await claimAndTrain(store, job.id, { steps: 1 });
  const stream = await request({ method: 'HEAD', url: `/v1/jobs/${job.id}/stream` });
  t.equal(stream.statusCode, 200);
  t.match(stream.headers['content-type'], /^text\/event-stream/);
  t.equal(
    (await request({ method: 'HEAD', url: '/v1/jobs', headers: { authorization: '' } })).statusCode,
    401,
  );
});

t.test(
  'long lists are compressed for clients that can read them; streams and short answers are not',
  async (t) => {
    const { app, request, createJob, store } = await start(t);
    const { id } = await createJob();
    for (let more = 0; more < 9; more++) await createJob();
    const headers = { 'accept-encoding': 'gzip, deflate, br' };
    const authorization = `Bearer ${ADMIN_KEY}`;
    const zipped = await app.inject({ url: '/v1/jobs', headers: { ...headers, authorization } });
    t.equal(zipped.headers['content-encoding'], 'gzip');
    t.match(zipped.headers.vary, /accept-encoding/i);
    const plain = await request({ url: '/v1/jobs' });
    t.equal(plain.headers['content-encoding'], undefined);
    t.equal(gunzipSync(zipped.rawPayload).toString(), plain.body);
    t.ok(
      zipped.rawPayload.length < plain.body.length / 4,
      `${zipped.rawPayload.length} of ${plain.body.length}`,
    );
    t.equal(
      (await request({ url: `/v1/jobs/${id}/attempts`, headers })).headers['content-encoding'],
      undefined,
    );
    await claimAndTrain(store, id, { steps: 100, finish: true });
    const stream = await request({ url: `/v1/jobs/${id}/stream`, headers });
    t.ok(stream.rawPayload.length > 8192, `${stream.rawPayload.length} bytes`);
    t.equal(stream.headers['content-encoding'], undefined);
  },
);

t.test('bodies of unsupported types and encodings', async (t) => {
  const { request } = await start(t);
  const zipped = gzipSync('to be or not to be');
  const text = { 'content-type': 'text/plain', 'content-encoding': 'gzip' };
  const url = '/v1/datasets?name=x';
  const reply = await request({ method: 'POST', url, headers: text, payload: zipped });
  t.match(reply.json<Problem>(), { status: 415, code: 'unsupported_media_type', detail: /gzip/ });
  t.equal(reply.headers['accept-encoding'], 'identity');
  const plain = { ...text, 'content-encoding': 'identity' };
  t.equal((await request({ method: 'POST', url, headers: plain, payload: 'to be' })).statusCode, 201);

  const latin = Buffer.from('{"name": "\xfc", "scopes": ["jobs:read"]}', 'latin1');
  const key = await request({ method: 'POST', url: '/v1/api-keys', headers: JSON_TYPE, payload: latin });
  t.match(key.json<Problem>(), { status: 400, code: 'malformed_json', detail: /not UTF-8/ });
  for (const name of ['%ff', '%c3%28', '%', '%zz'])
    t.match(
      (
        await request({ method: 'POST', url: `/v1/datasets?name=${name}`, headers: plain, payload: 'a' })
      ).json(),
      { status: 400, code: 'invalid_parameter' },
      name,
    );
});

t.test('null is a value', async (t) => {
  const { request, createJob } = await start(t);
  const { id } = await createJob();
  // Its body may be omitted.
  const rotate = `/v1/webhooks/wh_${'0'.repeat(26)}/rotate-secret`;
  const urls = ['/v1/jobs', '/v1/estimate', `/v1/jobs/${id}/resize`, '/v1/api-keys', rotate];
  for (const url of urls) {
    const reply = await request({ method: 'POST', url, headers: JSON_TYPE, payload: 'null' });
    t.match(reply.json<Problem>(), { status: 422, code: 'validation_failed' }, url);
  }
  for (const payload of ['{}', ''])
    t.match((await request({ method: 'POST', url: rotate, headers: JSON_TYPE, payload })).json(), {
      code: 'webhook_not_found',
    });
});

t.test('every answer has its request id and rate limit headers', async (t) => {
  const { app, request, headersOf } = await start(t, { limits: { requests_per_minute: 50 } });
  const answers = [
    await request({ url: '/v1/jobs' }),
    await request({ url: '/v1/jobs', headers: { authorization: 'Bearer no' } }),
    await request({ url: '/v1/jobs', headers: await headersOf('models') }),
    await request({ method: 'POST', url: '/v1/jobs', headers: JSON_TYPE, payload: '{' }),
    await request({
      method: 'POST',
      url: '/v1/jobs',
      headers: { 'content-type': 'text/plain' },
      payload: 'a',
    }),
    await request({ url: '/v1/nothing' }),
    await request({ method: 'PUT', url: '/v1/jobs' }),
  ];
  for (const { headers, statusCode } of answers) {
    const limit = { 'ratelimit-limit': '50', 'ratelimit-remaining': /^\d+$/, 'ratelimit-reset': /^\d+$/ };
    t.match(headers, { 'x-request-id': /^req_/, ...limit }, String(statusCode));
  }
  const [, refused] = answers;
  t.equal(refused?.headers['x-request-id'], refused?.json<Problem>().request_id);
  for (const url of ['/healthz', '/', '/docs/json']) {
    const { headers } = await app.inject({ url });
    t.match(headers, { 'x-request-id': /^req_/, 'ratelimit-limit': undefined }, `${url} is not counted`);
  }
});

t.test('requests without a key are limited by address', async (t) => {
  const { request, app } = await start(t, { limits: { requests_per_minute: 4 } });
  const ask = (remoteAddress: string, url: string, authorization = 'Bearer unknown') =>
    app.inject({ url, remoteAddress, headers: { authorization } });
  const codes = [];
  for (const url of ['/v1/jobs', '/v1/nothing', '/openapi.yaml', '/v1/jobs', '/v1/jobs', '/', '/v1/nothing'])
    codes.push((await ask('192.0.2.1', url)).statusCode);
  t.same(codes, [401, 404, 200, 401, 429, 200, 429], 'pages are not counted');
  t.equal((await ask('192.0.2.2', '/v1/jobs')).statusCode, 401, 'another address');
  t.equal((await ask('192.0.2.1', '/healthz')).statusCode, 200);
  t.equal(
    (await ask('192.0.2.1', '/v1/jobs', `Bearer ${ADMIN_KEY}`)).statusCode,
    200,
    'each key is counted separately',
  );
  t.equal((await request({ url: '/v1/jobs' })).headers['ratelimit-remaining'], '2');
});

t.test('an upload refused because of its key ends its connection', async (t) => {
  const stack = await start(t);
  const { port } = new URL(await stack.listen());
  for (const [path, type] of [
    ['/v1/datasets?name=x', 'text/plain'],
    ['/v1/models?name=x', 'application/x-tar'],
  ]) {
    const socket = connect(Number(port), '127.0.0.1').setEncoding('utf8');
    const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: ${type}\r\ncontent-length: 1000000000\r\n`;
    socket.write(`${head}authorization: Bearer unknown\r\n\r\n${'a'.repeat(1000)}`);
    let text = '';
    for await (const piece of socket) text += piece;
    t.match(text, /^HTTP\/1.1 401[\s\S]*connection: close/i);
  }
});

t.test('a body that no route reads, or whose key is refused, is not waited for', async (t) => {
  const stack = await start(t);
  const { port } = new URL(await stack.listen());
  for (const [path, status] of [
    ['/v1/nothing', 404],
    ['/v1/api-keys', 401],
    ['/sign-in/nothing', 404],
  ] as const) {
    const socket = connect(Number(port), '127.0.0.1').setEncoding('utf8');
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 900000\r\n\r\n{`,
    );
    let text = '';
    for await (const piece of socket) text += piece;
    t.match(text, new RegExp(`^HTTP/1.1 ${status}[\\s\\S]*connection: close`, 'i'), path);
  }
});

t.test('a client that sends a whole upload before reading gets the earlier refusal', async (t) => {
  const stack = await start(t);
  const { port } = new URL(await stack.listen());
  const bytes = 32 * 1024 * 1024;
  const type = 'content-type: application/x-tar';
  for (const [title, key, status] of [
    ['for its key', 'unknown', 401],
    ['for its content', ADMIN_KEY, 422],
  ] as const) {
    const socket = connect(Number(port), '127.0.0.1').setEncoding('utf8').pause();
    const head = `POST /v1/models?name=x HTTP/1.1\r\nhost: x\r\n${type}\r\ncontent-length: ${bytes}\r\n`;
    socket.write(`${head}authorization: Bearer ${key}\r\n\r\n`);
    await new Promise<void>((written, failed) => {
      socket.write(Buffer.alloc(bytes, 'a'), (error) => (error ? failed(error) : written()));
    });
    let text = '';
    for await (const piece of socket) text += piece;
    t.match(text, new RegExp(`^HTTP/1.1 ${status}[\\s\\S]*connection: close[\\s\\S]*}$`, 'i'), title);
  }
});
