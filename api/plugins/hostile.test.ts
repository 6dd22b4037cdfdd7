/** Hostile clients on a raw connection, which sends what no library would. */
import { once } from 'node:events';
import { connect } from 'node:net';
import t, { type Test } from 'tap';
import type { Problem } from '../../contracts/index.js';
import type { ApiLimits } from '../limits.js';
import { ADMIN_KEY, startTestStack } from '../testing/stack.js';

async function listening(t: Test, limits: Partial<ApiLimits> = {}) {
  const stack = await startTestStack({ limits });
  t.teardown(() => stack.close());
  const { hostname, port } = new URL(await stack.listen());
  /** Sends bytes, and reads until the server closes the connection. */
  const send = async (text: string): Promise<{ status: number; problem: Problem | null; text: string }> => {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    let answer = '';
    socket.setEncoding('utf8').on('data', (piece: string) => {
      answer += piece;
    });
    socket.write(text);
    await once(socket, 'close');
    const body = answer.split('\r\n\r\n').slice(1).join('\r\n\r\n');
    const isProblem = /content-type: application\/problem\+json/i.test(answer);
    return {
      status: Number(answer.split(' ')[1]),
      problem: isProblem ? JSON.parse(body) : null,
      text: answer,
    };
  };
  return { ...stack, send };
}

const HEAD = `Host: x\r\nAuthorization: Bearer ${ADMIN_KEY}\r\n`;
const JSON_HEAD = `${HEAD}Content-Type: application/json\r\n`;

t.test('headers that never end', async (t) => {
  const { send } = await listening(t, { headers_timeout_ms: 100 });
  const { status, problem } = await send(`GET /v1/jobs HTTP/1.1\r\n${HEAD}X-Slow: `);
  t.equal(status, 408);
  t.match(problem, { code: 'request_timeout', retryable: true });
});

t.test('a body that never arrives', async (t) => {
  const { send } = await listening(t, { json_body_timeout_ms: 100 });
  const { status, problem } = await send(
    `POST /v1/jobs HTTP/1.1\r\n${JSON_HEAD}Content-Length: 100\r\n\r\n{"model":`,
  );
  t.equal(status, 408);
  t.match(problem, { code: 'request_timeout' });
});

t.test('oversized headers', async (t) => {
  const { send } = await listening(t);
  const { status, problem } = await send(
    `GET /healthz HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(100_000)}\r\n\r\n`,
  );
  t.equal(status, 431);
  t.match(problem, { code: 'headers_too_large' });
});

t.test('malformed requests and request smuggling', async (t) => {
  const { send } = await listening(t);
  const refused = [
    'hello\r\n\r\n',
    'GET /healthz HTTP/9.9\r\n\r\n',
    'GET /healthz HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n\r\n',
    `POST /v1/jobs HTTP/1.1\r\n${JSON_HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `POST /v1/jobs HTTP/1.1\r\n${JSON_HEAD}Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}   `,
    `POST /v1/jobs HTTP/1.1\r\n${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
    'GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\nC: d\r\n: x\r\n\r\n',
  ];
  for (const text of refused) {
    const { status, problem } = await send(text);
    t.equal(status, 400, JSON.stringify(text));
    t.match(problem, { code: 'bad_request', errors: [] });
  }
});

t.test('path traversal', async (t) => {
  const { send } = await listening(t);
  const paths = [
    '/../../etc/passwd',
    '/..%2f..%2fetc%2fpasswd',
    '/%2e%2e/%2e%2e/etc/passwd',
    '/web/../openapi.yaml/..',
    '/v1/jobs/..%5c..%5cwindows',
    '/index.html%00.js',
    '//etc/passwd',
    '/v1/datasets/%2e%2e%2f%2e%2e%2fapi-key',
  ];
  for (const path of paths) {
    const { status, text } = await send(`GET ${path} HTTP/1.1\r\n${HEAD}Connection: close\r\n\r\n`);
    t.ok([400, 403, 404].includes(status), `${path} ${status}`);
    t.notMatch(text, /root:/);
  }
});

t.test('documents that are deep, long, or try prototype pollution', async (t) => {
  const { request } = await listening(t, { json_body_bytes: 200_000 });
  const post = (payload: string) =>
    request({ method: 'POST', url: '/v1/jobs', headers: { 'content-type': 'application/json' }, payload });
  const deep = await post(`${'{"model":'.repeat(10_000)}1${'}'.repeat(10_000)}`);
  t.match(deep.json(), { status: 400, code: 'malformed_json', detail: /nested deeper/ });
  t.equal((await post(`{"name":"${'x'.repeat(300_000)}"}`)).json().code, 'payload_too_large');
  for (const text of [
    '{"__proto__":{"polluted":1}}',
    '{"constructor":{"prototype":{"polluted":1}}}',
    '{"model":{"__proto__":{"polluted":1}}}',
  ]) {
    const reply = await post(text);
    t.equal(reply.statusCode, 400, text);
    t.equal(Reflect.get({}, 'polluted'), undefined);
  }
  const list = await request({ url: '/v1/jobs?__proto__[polluted]=1&constructor=2' });
  t.equal(list.statusCode, 400);
  t.equal(Reflect.get({}, 'polluted'), undefined);
});
