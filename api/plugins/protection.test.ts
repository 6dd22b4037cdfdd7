import t from 'tap';
import type { Problem } from '../../contracts/index.js';
import { startTestStack } from '../testing/stack.js';

t.test('a key above its limit is told when to retry; other keys are unaffected', async (t) => {
  const stack = await startTestStack({ limits: { requests_per_minute: 3 } });
  t.teardown(() => stack.close());
  const other = await stack.headersOf('jobs:read');
  for (let request = 0; request < 3; request += 1) {
    const reply = await stack.request({ url: '/v1/jobs' });
    t.equal(reply.statusCode, 200);
    t.match(reply.headers, { 'ratelimit-limit': '3', 'ratelimit-remaining': String(2 - request) });
  }
  const reply = await stack.request({ url: '/v1/jobs' });
  t.equal(reply.statusCode, 429);
  t.match(reply.json<Problem>(), { code: 'rate_limited', retryable: true });
  t.ok(Number(reply.headers['retry-after']) > 0);
  t.match(reply.headers, { 'ratelimit-remaining': '0', 'ratelimit-reset': /^\d+$/ });
  t.equal((await stack.request({ url: '/v1/jobs', headers: other })).statusCode, 200);
  t.equal((await stack.request({ url: '/readyz' })).statusCode, 200);
});

t.test('a key may have its own limit, which both of its secrets share', async (t) => {
  const stack = await startTestStack({ limits: { requests_per_minute: 100 } });
  t.teardown(() => stack.close());
  const { store } = stack;
  const { id } = await store.putApiKey('zf_one', {
    name: 'a',
    scopes: ['jobs:read'],
    requests_per_minute: 2,
  });
  await store.rotateApiKey(id, 'zf_two', 60_000);
  const ask = async (secret: string) =>
    (await stack.request({ url: '/v1/jobs', headers: { authorization: `Bearer ${secret}` } })).statusCode;
  t.same([await ask('zf_one'), await ask('zf_two'), await ask('zf_one')], [200, 200, 429]);
});

t.test('a malformed path is counted and answered with the common headers', async (t) => {
  const stack = await startTestStack({ limits: { requests_per_minute: 2 } });
  t.teardown(() => stack.close());
  for (const [url, status] of [
    ['/v1/jobs/%E0%A4%A', 400],
    [`/v1/jobs/${'a'.repeat(65)}`, 400],
    ['/v1/jobs/%E0%A4%A', 429],
  ] as const) {
    // The stack compares headers with the contract.
    t.equal((await stack.request({ url })).statusCode, status, url);
  }
});

t.test('files outside of the console are out of reach', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  for (const url of [
    '/../package.json',
    '/%2e%2e/package.json',
    '/package.json',
    '/.gitignore',
    '/../app/main.tsx',
  ]) {
    t.equal((await stack.app.inject({ url })).statusCode, 404, url);
  }
});
