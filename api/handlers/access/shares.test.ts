import type { InjectOptions } from 'fastify';
import t, { type Test } from 'tap';
import type { AuditEntry, Me, NewShare, Page, Problem } from '../../../contracts/index.js';
import { ContractChecker } from '../../testing/contract-checker.js';
import { openStream } from '../../testing/sse-client.js';
import { ADMIN_KEY, startTestStack } from '../../testing/stack.js';

const DAY_MS = 86_400_000;

async function start(t: Pick<Test, 'teardown'>) {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { app } = stack;
  const checker = ContractChecker.forContract(app.services.contract);
  const send = async (request: InjectOptions, headers: Record<string, string> = {}) => {
    const reply = await app.inject({ ...request, headers: { ...request.headers, ...headers } });
    checker.check(request, reply);
    return reply;
  };
  const own = (request: InjectOptions) => send(request, { authorization: `Bearer ${ADMIN_KEY}` });
  const share = async (jobId: string, payload: object = {}) =>
    (await own({ method: 'POST', url: `/v1/jobs/${jobId}/shares`, payload })).json<NewShare>();
  /** Signs a browser in. @param cookie of its present session */
  const signIn = async (token: string, cookie = '') => {
    const reply = await send({ method: 'POST', url: '/v1/sessions', payload: { token } }, { cookie });
    return { reply, cookie: String(reply.headers['set-cookie']).split(';', 1)[0] ?? '' };
  };
  return { stack, send, own, share, signIn };
}

const shared = await start(t);

t.test('a share is made, listed without its token, and revoked', async (t) => {
  const { stack, own, share } = shared;
  const { id: jobId } = await stack.createJob();
  const url = `/v1/jobs/${jobId}/shares`;
  const before = Date.now();
  const reply = await own({ method: 'POST', url, payload: {} });
  const { token, ...made } = reply.json<NewShare>();
  t.match(reply.headers, { location: `${url}/${made.id}`, 'cache-control': 'no-store' });
  t.match(token, /^zf_share_[A-Za-z0-9_-]{43}$/);
  t.match(made, { job_id: jobId, description: '' });
  const left = Date.parse(made.expires_at) - before;
  t.ok(left >= 7 * DAY_MS - 60_000 && left < 8 * DAY_MS, `${left} ms`);
  const longest = await share(jobId, { expires_in_seconds: 7_776_000, description: 'a note' });
  const list = async () => (await own({ url })).json<{ data: NewShare[] }>().data;
  t.same(
    (await list()).map(({ id, description }) => [id, description]),
    [
      [longest.id, 'a note'],
      [made.id, ''],
    ],
  );
  t.notOk(JSON.stringify(await list()).includes('zf_share'));
  for (const payload of [{ expires_in_seconds: 0 }, { expires_in_seconds: 7_776_001 }, { scopes: ['admin'] }])
    t.match((await own({ method: 'POST', url, payload })).json(), { code: 'validation_failed' });
  t.equal((await own({ method: 'DELETE', url: `${url}/${made.id}` })).statusCode, 204);
  t.equal(
    (await own({ method: 'DELETE', url: `${url}/${made.id}` })).json<Problem>().code,
    'share_not_found',
  );
  const { data } = (await own({ url: `/v1/audit-log?resource=${made.id}` })).json<Page<AuditEntry>>();
  t.match(data, [{ operation: 'createShare', principal_name: 'test', outcome: 'succeeded' }]);
});

t.test('a job has a bounded number of shares', async (t) => {
  const { stack, own } = shared;
  const { id: jobId } = await stack.createJob();
  for (let n = 0; n < 50; n += 1)
    await stack.store.createShare(`zf_share_${n}`, { job_id: jobId, description: '', life_ms: DAY_MS });
  const reply = await own({ method: 'POST', url: `/v1/jobs/${jobId}/shares`, payload: {} });
  t.match(reply.json(), { status: 409, code: 'too_many_shares', detail: /50 shares; revoke one/ });
});

t.test('a browser session of a share has its rights', async (t) => {
  const { stack, send, share, signIn } = shared;
  const { id: jobId } = await stack.createJob({ name: 'shown' });
  const other = await stack.createJob();
  const { token, ...made } = await share(jobId, { description: 'a note' });
  const { reply, cookie } = await signIn(token);
  t.equal(reply.statusCode, 201);
  t.match(reply.headers['set-cookie'], /; HttpOnly; SameSite=Strict$/);
  const me = (await send({ url: '/v1/me' }, { cookie })).json<Me>();
  t.same(me, {
    api_key: null,
    share: made,
    user: null,
    scopes: ['jobs:read'],
    project: null,
    currency: null,
  });
  t.same(reply.json<{ me: Me }>().me, me);
  const get = async (path: string) => (await send({ url: path }, { cookie })).statusCode;
  t.same([await get(`/v1/jobs/${jobId}`), await get(`/v1/jobs/${other.id}`)], [200, 404]);
  t.same([await get('/v1/jobs'), await get('/v1/api-keys')], [403, 403]);
  const console = { cookie, 'x-zerofleet-console': '1' };
  const post = (url: string) => send({ method: 'POST', url, payload: {} }, console);
  for (const url of [`/v1/jobs/${jobId}/shares`, `/v1/jobs/${jobId}/pause`])
    t.equal((await post(url)).json<Problem>().code, 'outside_share');
  t.equal((await send({ method: 'POST', url: '/v1/sign-in-codes' }, console)).statusCode, 403);
  const foreign = { cookie, 'sec-fetch-site': 'cross-site' };
  t.equal((await send({ url: '/v1/me' }, foreign)).json<Problem>().code, 'csrf_rejected');

  const next = await signIn(ADMIN_KEY, cookie);
  t.equal(await get('/v1/me'), 401, 'a browser has one session');
  t.equal((await send({ url: '/v1/me' }, { cookie: next.cookie })).statusCode, 200);
  const leftBy = await signIn(token);
  const out = { cookie: leftBy.cookie, 'x-zerofleet-console': '1' };
  t.equal((await send({ method: 'DELETE', url: '/v1/sessions/current' }, out)).statusCode, 204);
  t.equal((await send({ url: '/v1/me' }, { cookie: leftBy.cookie })).statusCode, 401);
  t.equal((await send({ url: '/v1/me' }, { authorization: `Bearer ${token}` })).statusCode, 200);
});

t.test('a share that ends takes its sessions and streams with it', async (t) => {
  const { stack, own, send, share, signIn } = shared;
  const base = await stack.listen();
  const { id: jobId } = await stack.createJob();
  const open = (caller: string | { cookie: string }) => openStream(`${base}/v1/jobs/${jobId}/stream`, caller);
  const isValid = async (cookie: string) => (await send({ url: '/v1/me' }, { cookie })).statusCode === 200;

  const revoked = await share(jobId);
  const { cookie } = await signIn(revoked.token);
  const streams = [await open({ cookie }), await open(revoked.token)];
  const stays = await open(ADMIN_KEY);
  t.ok(await isValid(cookie));
  await own({ method: 'DELETE', url: `/v1/jobs/${jobId}/shares/${revoked.id}` });
  for (const stream of streams) {
    const messages = await stream.rest();
    t.notOk(messages.some(({ event }) => event === 'end'));
  }
  t.notOk(await isValid(cookie));
  t.equal((await signIn(revoked.token)).reply.json<Problem>().code, 'unauthenticated');

  const short = await share(jobId, { expires_in_seconds: 1 });
  const expiring = await open(short.token);
  await expiring.rest();
  t.match((await signIn(short.token)).reply.json(), { code: 'unauthenticated', detail: /share link/ });

  const last = await share(jobId);
  const session = await signIn(last.token);
  await stack.store.requestCancel(jobId);
  await stays.rest();
  t.ok(await isValid(session.cookie), 'a job that has ended can be read');
  t.equal((await own({ method: 'DELETE', url: `/v1/jobs/${jobId}` })).statusCode, 204);
  // The message about the change travels through Redis.
  while (await isValid(session.cookie));
  t.equal((await signIn(last.token)).reply.statusCode, 401);
});
