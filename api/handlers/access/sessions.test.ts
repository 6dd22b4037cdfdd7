import { setTimeout as sleep } from 'node:timers/promises';
import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import t, { type Test } from 'tap';
import type { AuditEntry, Job, Page, Problem, Session, SignInCode } from '../../../contracts/index.js';
import { openJobStore, SESSION_MS } from '../../../state/index.js';
import { buildApp } from '../../app.js';
import { ContractChecker } from '../../testing/contract-checker.js';
import { openStream } from '../../testing/sse-client.js';
import { ADMIN_KEY, startTestStack, type TestStackOptions } from '../../testing/stack.js';

const FROM_CONSOLE = { 'x-zerofleet-console': '1' };

async function start(t: Pick<Test, 'teardown'>, options?: TestStackOptions) {
  const stack = await startTestStack(options);
  t.teardown(() => stack.close());
  const { app } = stack;
  const checker = ContractChecker.forContract(app.services.contract);
  /** A request of a browser, without an Authorization header. */
  const browse = async (request: InjectOptions, cookie?: string) => {
    const headers = { ...request.headers, ...(cookie !== undefined && { cookie }) };
    const reply = await app.inject({ ...request, headers });
    checker.check(request, reply);
    return reply;
  };
  const signIn = (payload: object, headers = {}) =>
    browse({ method: 'POST', url: '/v1/sessions', payload, headers });
  const newCode = async (headers = {}) =>
    (await stack.request({ method: 'POST', url: '/v1/sign-in-codes', headers })).json<SignInCode>();
  /** The cookie of a new session. */
  const cookieOf = async (token = ADMIN_KEY) => cookieIn(await signIn({ token }));
  return { stack, browse, signIn, newCode, cookieOf };
}

const shared = await start(t);

/** Returns the `name=value` pair that a browser sends back for a `Set-Cookie` header. */
function cookieIn(reply: LightMyRequestResponse): string {
  return String(reply.headers['set-cookie']).split(';', 1)[0] ?? '';
}

const status = async (reply: Promise<LightMyRequestResponse>) => (await reply).statusCode;
const codeOf = async (reply: Promise<LightMyRequestResponse>) => (await reply).json<Problem>().code;

t.test('a code signs one browser in', async (t) => {
  const { stack, browse, signIn, newCode } = shared;
  const before = Date.now();
  const made = await newCode();
  const left = Date.parse(made.expires_at) - before;
  t.ok(left >= 119_000 && left < 180_000, `${left} ms`);
  const replies = await Promise.all([1, 2, 3].map(() => signIn({ code: made.code })));
  const [reply, ...more] = replies.filter(({ statusCode }) => statusCode === 201);
  t.same([more.length, replies.filter(({ statusCode }) => statusCode === 401).length], [0, 2]);
  if (reply === undefined) return;
  t.match(
    reply.headers['set-cookie'],
    /^zf_session=zf_session_[A-Za-z0-9_-]{43}; Max-Age=604800; Path=\/; HttpOnly; SameSite=Strict$/,
  );
  t.equal(reply.headers['cache-control'], 'no-store');
  const session = reply.json<Session>();
  t.match(session.me, {
    api_key: { name: 'test', scopes: ['admin', 'operator'] },
    share: null,
    project: { name: 'default' },
  });
  t.ok(Math.abs(Date.parse(session.expires_at) - before - SESSION_MS) < 600_000);
  const cookie = cookieIn(reply);
  const [, token = 'none'] = cookie.split('=');
  t.notOk(reply.body.includes(token));

  const me = await browse({ url: '/v1/me' }, `theme=dark; ${cookie}; other=1`);
  t.match(me.json(), session.me);
  t.equal(me.headers['set-cookie'], undefined, 'not prolonged with each request');
  const again = await browse({ method: 'POST', url: '/v1/sign-in-codes', headers: FROM_CONSOLE }, cookie);
  t.equal(again.json<Problem>().code, 'insufficient_scope', 'a session cannot leave its browser');
  const { data } = (await browse({ url: '/v1/audit-log' }, cookie)).json<Page<AuditEntry>>();
  t.strictSame(
    data.map(({ operation, principal_name, session, outcome }) => [
      operation,
      principal_name,
      session,
      outcome,
    ]),
    [
      ['createSignInCode', 'test', true, 'refused'],
      ['createSession', 'test', false, 'succeeded'],
      ['createSignInCode', 'test', false, 'succeeded'],
    ],
  );
  t.notOk(me.body.includes(token) || JSON.stringify(data).includes(token));
  const { data: keys } = (await stack.request({ url: '/v1/api-keys' })).json<Page<object>>();
  t.equal(keys.length, 1);

  const { code } = await newCode();
  const next = cookieIn(await signIn({ code }, { cookie }));
  t.same(
    [await status(browse({ url: '/v1/me' }, cookie)), await status(browse({ url: '/v1/me' }, next))],
    [401, 200],
    'a browser has one session',
  );
});

t.test('a key signs in, too; what is wrong is refused', async (t) => {
  const { stack, browse, signIn, newCode } = shared;
  t.equal(await status(signIn({ token: ADMIN_KEY })), 201);
  const { store } = stack;
  const past = new Date(0).toISOString();
  await store.putApiKey('zf_expired', { name: 'old', scopes: ['admin'], expires_at: past });
  for (const payload of [{ token: 'zf_unknown' }, { token: 'zf_expired' }, { code: 'x' }])
    t.equal(await codeOf(signIn(payload)), 'unauthenticated');
  for (const payload of [{}, { token: ADMIN_KEY, code: 'x' }, { token: '' }, { api_key: ADMIN_KEY }, []])
    t.equal(await codeOf(signIn(payload)), 'validation_failed', JSON.stringify(payload));
  const { code } = await newCode();
  const form = { 'content-type': 'text/plain' };
  t.equal(await status(signIn(JSON.stringify({ code }) as unknown as object, form)), 415);
  for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }])
    t.equal(await codeOf(signIn({ code }, headers)), 'csrf_rejected', 'another site signs nobody in');
  t.equal(await status(signIn({ code })), 201, 'none of these used it up');

  const revoked = await store.putApiKey('zf_revoked', { name: 'x', scopes: ['admin'] });
  const orphan = await newCode({ authorization: 'Bearer zf_revoked' });
  await store.revokeApiKey(revoked.id);
  t.equal(await codeOf(signIn({ code: orphan.code })), 'unauthenticated');
  for (const cookie of ['zf_session=unknown', 'zf_session=', 'other=1', `zf_session=${ADMIN_KEY}`, ';;='])
    t.equal(await status(browse({ url: '/v1/me' }, cookie)), 401, cookie);
});

t.test('over HTTPS the cookie is secure', async (t) => {
  const { signIn } = shared;
  const origin = (from: string, site?: string) => ({
    origin: from,
    host: new URL(from).host,
    ...(site && { 'sec-fetch-site': site }),
  });
  const cookie = async (headers: object) =>
    String((await signIn({ token: ADMIN_KEY }, headers)).headers['set-cookie']);
  t.match(await cookie(origin('https://train.example.com', 'same-origin')), /; Secure/);
  t.match(await cookie(origin('https://train.example.com')), /; Secure/);
  t.notMatch(await cookie(origin('http://127.0.0.1:8080', 'same-origin')), /Secure/);
  t.notMatch(await cookie({}), /Secure/);
});

t.test('requests from other sites are refused', async (t) => {
  const { stack, browse, cookieOf } = shared;
  const cookie = await cookieOf();
  const job = await stack.createJob();
  const host = 'train.example.com';
  const own = { origin: `https://${host}`, host };
  const accepted: [string, Record<string, string>, 'reads' | 'all' | 'nothing'][] = [
    ['nothing said', {}, 'reads'],
    ['the header of the console', FROM_CONSOLE, 'all'],
    ['another value', { 'x-zerofleet-console': 'true' }, 'reads'],
    ['same origin', { ...FROM_CONSOLE, 'sec-fetch-site': 'same-origin' }, 'all'],
    ['same origin, but without the header', { 'sec-fetch-site': 'same-origin' }, 'reads'],
    ['an address that a user typed', { 'sec-fetch-site': 'none' }, 'reads'],
    ['a neighbouring host', { ...FROM_CONSOLE, 'sec-fetch-site': 'same-site' }, 'nothing'],
    ['another site', { ...FROM_CONSOLE, 'sec-fetch-site': 'cross-site' }, 'nothing'],
    ['own origin', { ...FROM_CONSOLE, ...own }, 'all'],
    [
      'own origin, behind a proxy that changes the host',
      { ...FROM_CONSOLE, ...own, host: 'backend:8080', 'sec-fetch-site': 'same-origin' },
      'all',
    ],
    ['another origin', { ...FROM_CONSOLE, ...own, origin: 'https://evil.example' }, 'nothing'],
    ['another port', { ...FROM_CONSOLE, ...own, origin: `https://${host}:8443` }, 'nothing'],
    ['an opaque origin', { ...FROM_CONSOLE, ...own, origin: 'null' }, 'nothing'],
  ];
  for (const [title, headers, allowed] of accepted) {
    const send = async (
      method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'DELETE',
      url: string,
      payload?: object,
    ) => {
      const reply = await browse({ method, url, headers, ...(payload && { payload }) }, cookie);
      const refused = reply.statusCode === 403;
      if (refused && method !== 'HEAD') t.equal(reply.json<Problem>().code, 'csrf_rejected', title);
      return !refused;
    };
    const [reads, writes] = [allowed !== 'nothing', allowed === 'all'];
    t.equal(await send('GET', '/v1/jobs'), reads, `GET: ${title}`);
    t.equal(await send('HEAD', '/v1/jobs'), reads, `HEAD: ${title}`);
    t.equal(await send('POST', `/v1/jobs/${job.id}/pause`), writes, `POST: ${title}`);
    t.equal(await send('PATCH', `/v1/jobs/${job.id}`, { labels: {} }), writes, `PATCH: ${title}`);
    t.equal(await send('DELETE', '/v1/webhooks/wh_00000000000000000000000000'), writes, `DELETE: ${title}`);
  }
  const evil = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
  t.equal(
    await status(stack.request({ method: 'POST', url: `/v1/jobs/${job.id}/pause`, headers: evil })),
    202,
    'a key in the header is no cookie',
  );
});

t.test('a session has the rights of its key alone', async (t) => {
  const { stack, browse, cookieOf } = shared;
  const { store } = stack;
  const job = await stack.createJob();
  const reader = { name: 'reader', scopes: ['jobs:read' as const] };
  await store.putApiKey('zf_reader', reader);
  await store.putApiKey('zf_foreign', { ...reader, scopes: ['admin'], project: 'team-b' });
  const [own, foreign] = [await cookieOf('zf_reader'), await cookieOf('zf_foreign')];
  const pause = { method: 'POST' as const, url: `/v1/jobs/${job.id}/pause`, headers: FROM_CONSOLE };
  t.equal(await status(browse({ url: `/v1/jobs/${job.id}` }, own)), 200);
  t.equal(await codeOf(browse(pause, own)), 'insufficient_scope');
  t.equal(await status(browse({ url: `/v1/jobs/${job.id}` }, foreign)), 404);
  t.equal(await codeOf(browse(pause, foreign)), 'job_not_found');
  t.same((await browse({ url: '/v1/jobs' }, foreign)).json<Page<Job>>().data, []);
  t.equal(await status(stack.request({ url: `/v1/jobs/${job.id}`, headers: { cookie: foreign } })), 200);
  const malformed = { url: '/v1/jobs', headers: { authorization: 'Bearer' } };
  t.equal(await status(browse(malformed, own)), 401, 'the cookie does not replace a wrong header');
});

t.test('rate limits', async (t) => {
  const { stack, browse, signIn, cookieOf } = await start(t, { limits: { requests_per_minute: 5 } });
  await stack.store.putApiKey('zf_slow', { name: 'slow', scopes: ['jobs:read'], requests_per_minute: 2 });
  const cookie = await cookieOf('zf_slow');
  const headers = { authorization: 'Bearer zf_slow' };
  t.equal(await status(browse({ url: '/v1/jobs', headers })), 200);
  t.equal(await status(browse({ url: '/v1/jobs' }, cookie)), 200);
  t.equal(await status(browse({ url: '/v1/jobs' }, cookie)), 429, 'key and session share a count');
  for (let left = 4; left > 0; left -= 1) t.equal(await status(signIn({ code: 'guess' })), 401);
  t.equal(await status(signIn({ code: 'guess' })), 429, 'sign-ins count for the address');
});

t.test('a session survives the API, and ends with its key', async (t) => {
  const { stack, browse, cookieOf } = shared;
  const { store } = stack;
  const key = await store.putApiKey('zf_k', { name: 'k', scopes: ['jobs:read'] });
  const cookie = await cookieOf('zf_k');
  const another = await openJobStore({ url: stack.redis.url });
  const restarted = buildApp({ ...stack.app.services, store: another });
  t.teardown(async () => {
    await restarted.close();
    await another.close();
  });
  const request = { url: '/v1/jobs', headers: { cookie } };
  t.equal((await restarted.inject(request)).statusCode, 200);
  await store.updateApiKey(key.id, (before) => ({ ...before, expires_at: new Date(0).toISOString() }));
  t.equal(await codeOf(browse({ url: '/v1/jobs' }, cookie)), 'unauthenticated', 'it has expired');
  await store.updateApiKey(key.id, (before) => ({ ...before, expires_at: null }));
  t.equal(await status(browse({ url: '/v1/jobs' }, cookie)), 200);
  await store.revokeApiKey(key.id);
  t.equal(await codeOf(browse({ url: '/v1/jobs' }, cookie)), 'unauthenticated', 'it was revoked');
  while ((await restarted.inject(request)).statusCode !== 401) await sleep(5);
});

t.test('a session in use is prolonged', async (t) => {
  const { stack } = shared;
  const { app, store } = stack;
  const [key] = (await store.listApiKeys()).data;
  if (key === undefined) throw new Error('no key');
  const lifeMs = SESSION_MS - 2 * 3_600_000;
  for (const secure of [true, false]) {
    const token = `token-${secure}`;
    const begun = await store.createSession(token, { principal_id: key.id }, { secure, lifeMs });
    const headers = { cookie: `zf_session=${token}` };
    const reply = await app.inject({ url: '/v1/me', headers });
    const flag = secure ? '; Secure' : '';
    t.equal(
      reply.headers['set-cookie'],
      `zf_session=${token}; Max-Age=604800; Path=/; HttpOnly${flag}; SameSite=Strict`,
    );
    const end = async () => (await store.findSession(token))?.expires_at ?? 0;
    while ((await end()) <= (begun?.expires_at ?? 0)) await sleep(5);
    t.equal((await app.inject({ url: '/v1/me', headers })).headers['set-cookie'], undefined);
  }
});

t.test('signing out, here and everywhere; streams end', async (t) => {
  const { stack, browse, cookieOf, newCode, signIn } = shared;
  const [here, there, third] = [await cookieOf(), await cookieOf(), await cookieOf()];
  const base = await stack.listen();
  const job = await stack.createJob();
  const open = (cookie: string) => openStream(`${base}/v1/jobs/${job.id}/stream`, { cookie });
  const [first, second] = [await open(here), await open(there)];
  t.match(first.contentType, /^text\/event-stream/);
  const isValid = async (cookie: string) => (await status(browse({ url: '/v1/me' }, cookie))) === 200;
  const signOut = (url: string, cookie: string) =>
    browse({ method: 'DELETE', url, headers: FROM_CONSOLE }, cookie);

  const out = await signOut('/v1/sessions/current', here);
  t.equal(out.statusCode, 204);
  t.equal(out.headers['set-cookie'], 'zf_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict');
  await first.rest();
  t.same([await isValid(here), await isValid(there), await isValid(third)], [false, true, true]);
  t.equal(await status(stack.request({ method: 'DELETE', url: '/v1/sessions/current' })), 204);
  t.ok(await isValid(there), 'a key has no session to end');

  const { code } = await newCode();
  t.match((await signOut('/v1/sessions', there)).headers['set-cookie'], /^zf_session=; Max-Age=0;/);
  await second.rest();
  t.same([await isValid(there), await isValid(third)], [false, false]);
  t.equal(await status(signIn({ code })), 401, 'a code that nobody has used ends as well');
  t.equal(await status(stack.request({ url: '/v1/me' })), 200, 'the key stays');
});
