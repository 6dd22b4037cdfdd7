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

const unknown = { authorization: 'Bearer zf_unknown' };

t.test('refused requests of an address lock nobody out: sign-in, console and docs go on', async (t) => {
  const stack = await startTestStack({ limits: { requests_per_minute: 3 } });
  t.teardown(() => stack.close());
  const status = async (url: string) => (await stack.app.inject({ url })).statusCode;
  const refused = async () => (await stack.request({ url: '/v1/jobs', headers: unknown })).statusCode;
  t.same([await refused(), await refused(), await refused(), await refused()], [401, 401, 401, 429]);
  for (const url of ['/', '/icon.svg', '/docs/', '/docs/json', '/healthz', '/v1/sign-in-methods'])
    for (let n = 0; n < 2; n += 1) t.ok((await status(url)) < 400, url);
  const signIn = (token: string) =>
    stack.request({
      method: 'POST',
      url: '/v1/sessions',
      payload: { token },
      headers: { authorization: '' },
    });
  t.equal((await signIn('zf_test_admin_key')).statusCode, 201);
  t.equal((await signIn('zf_unknown')).statusCode, 429, 'sign-ins have a count of their own');
  t.equal(await status('/none'), 429, 'other paths count for the address');
});

t.test('clients behind trusted proxies have their own addresses', async (t) => {
  const limits = { requests_per_minute: 1 };
  const ask = async (trustedProxies: number) => {
    const stack = await startTestStack({ limits, trustedProxies });
    t.teardown(() => stack.close());
    return async (forwarded: string) =>
      (
        await stack.request({
          url: '/v1/jobs',
          headers: { ...unknown, ...(forwarded && { 'x-forwarded-for': forwarded }) },
        })
      ).statusCode;
  };
  const one = await ask(1);
  t.same([await one('10.0.0.1'), await one('10.0.0.1'), await one('10.0.0.2')], [401, 429, 401]);
  t.equal(await one('192.0.2.9, 10.0.0.1'), 429, 'what a client has sent itself does not count');
  t.same([await one(''), await one('')], [401, 429]);
  const two = await ask(2);
  t.same([await two('192.0.2.9, 10.0.0.1'), await two('192.0.2.8, 10.0.0.1')], [401, 401]);
  t.equal(await two('x, 192.0.2.8, 10.0.0.2'), 429);
  const none = await ask(0);
  t.same([await none('10.0.0.1'), await none('10.0.0.2')], [401, 429]);
});
