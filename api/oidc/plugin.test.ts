/** Sign-in by an OpenID provider, over HTTP. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import type { AuditEntry, Me, Page, SignInMethods } from '../../contracts/index.js';
import { signInAtProvider, startProvider, testSettings } from '../testing/oidc.js';
import { ADMIN_KEY, startTestStack } from '../testing/stack.js';
import type { OidcSettings } from './settings.js';

const CONSOLE = 'http://zerofleet.test/';

async function start(t: Test, changes: Partial<OidcSettings> = {}) {
  const stack = await startTestStack({ oidc: testSettings(changes) });
  t.teardown(() => stack.close());
  const { app } = stack;
  /** @returns where the sign-in leads, and the cookie that it begins with */
  const begin = async (headers = {}) => {
    const reply = await app.inject({ url: '/sign-in/oidc', headers });
    const set = String(reply.headers['set-cookie']);
    return { to: String(reply.headers.location), set, cookie: set.split(';', 1)[0] ?? '' };
  };
  const finish = async ({ search }: Pick<URL, 'search'>, cookie = '') => {
    const reply = await app.inject({ url: `/sign-in/oidc/callback${search}`, headers: { cookie } });
    const cookies = [reply.headers['set-cookie'] ?? []].flat();
    const session = cookies.find((one) => one.startsWith('zf_session='));
    return { to: String(reply.headers.location), session, cookie: session?.split(';', 1)[0] ?? '', cookies };
  };
  const signIn = async (login: string) => {
    const { to, cookie } = await begin();
    return finish(await signInAtProvider(to, login), cookie);
  };
  const me = async (cookie: string) => app.inject({ url: '/v1/me', headers: { cookie } });
  return { stack, begin, finish, signIn, me };
}

const problem = (name: string) => `${CONSOLE}#/sign-in?problem=${name}`;
const issuer = await startProvider(t, `${CONSOLE}sign-in/oidc/callback`);

t.test('a user signs in with the rights of a role', async (t) => {
  const { stack, begin, finish, signIn, me } = await start(t, { issuer });
  t.same((await stack.request({ url: '/v1/sign-in-methods' })).json<SignInMethods>(), {
    oidc: { name: 'Example Login', path: 'sign-in/oidc' },
  });
  const begun = await begin({ host: 'evil.example', 'x-forwarded-host': 'evil.example' });
  const foreign = await stack.app.inject({
    url: '/sign-in/oidc',
    headers: { 'sec-fetch-site': 'cross-site' },
  });
  t.match(foreign.json(), { code: 'csrf_rejected' }, 'another site begins no sign-in');
  t.match(begun.set, /^zf_sign_in=[^;]+; Max-Age=600; Path=\/sign-in\/oidc; HttpOnly; SameSite=Lax$/);
  const { searchParams } = new URL(begun.to);
  t.equal(searchParams.get('redirect_uri'), `${CONSOLE}sign-in/oidc/callback`, 'from no header');
  t.equal(searchParams.get('code_challenge_method'), 'S256');
  const ended = await finish(await signInAtProvider(begun.to, 'admin-ada'), begun.cookie);
  t.equal(ended.to, `${CONSOLE}#/runs`);
  t.match(ended.session, /; Max-Age=28800; Path=\/; HttpOnly; SameSite=Strict$/);
  t.ok(ended.cookies.some((one) => one.startsWith('zf_sign_in=; Max-Age=0')));
  const reply = await me(ended.cookie);
  const { user, ...rest } = reply.json<Me>();
  t.match(rest, { api_key: null, share: null, scopes: ['admin'], project: { name: 'default' } });
  t.match(user, { subject: 'admin-ada', name: 'admin-ada by name', email: 'admin-ada@example.com' });
  t.equal(reply.headers['set-cookie'], undefined, 'it is not prolonged');

  const headers = { cookie: ended.cookie, 'x-zerofleet-console': '1' };
  const job = await stack.createJob();
  const url = `/v1/jobs/${job.id}/pause`;
  t.equal((await stack.app.inject({ method: 'POST', url, headers })).statusCode, 202);
  t.equal(
    (await stack.app.inject({ method: 'POST', url, headers: { cookie: ended.cookie } })).statusCode,
    403,
  );
  const { data } = (await stack.request({ url: `/v1/audit-log?principal_id=${user?.id}` })).json<
    Page<AuditEntry>
  >();
  t.match(
    data.map(({ operation, principal_name, session }) => [operation, principal_name, session]),
    [
      ['pauseJob', 'admin-ada by name', true],
      ['pauseJob', 'admin-ada by name', true],
      ['createSession', 'admin-ada by name', false],
    ],
  );

  const again = await signIn('admin-ada');
  t.equal((await me(again.cookie)).json<Me>().user?.id, user?.id, 'the same user');
  t.equal((await stack.app.inject({ method: 'DELETE', url: '/v1/sessions', headers })).statusCode, 204);
  for (const { cookie } of [ended, again])
    t.equal((await me(cookie)).statusCode, 401, 'signed out everywhere');
  const other = await signIn('ml-bob');
  t.match((await me(other.cookie)).json(), { scopes: ['jobs:read'], project: { name: 'team-b' } });
});

t.test('what is wrong signs nobody in', async (t) => {
  const { begin, finish, signIn } = await start(t, { issuer });
  t.match(await signIn('guest'), { to: problem('role_missing'), session: undefined });
  const refused = await begin();
  t.match(await finish(await signInAtProvider(refused.to, null), refused.cookie), {
    to: problem('sign_in_refused'),
    session: undefined,
  });
  const [one, other] = [await begin(), await begin()];
  const answer = await signInAtProvider(one.to, 'ml');
  for (const cookie of [undefined, '', 'zf_sign_in=a', 'zf_sign_in=a.b.c', other.cookie])
    t.match(await finish(answer, cookie), { to: problem('sign_in_mismatch'), session: undefined });
  t.match(await finish({ search: '' }, one.cookie), { to: problem('sign_in_mismatch') });
  t.match(await finish(answer, one.cookie), { to: `${CONSOLE}#/runs` });
  t.match(
    await finish(answer, one.cookie),
    { to: problem('sign_in_expired'), session: undefined },
    'used up',
  );
});

t.test('a provider that is away, or knows another secret, leaves the keys', async (t) => {
  const away = await start(t);
  t.equal((await away.begin()).to, problem('provider_unavailable'));
  const payload = { token: ADMIN_KEY };
  const reply = await away.stack.app.inject({ method: 'POST', url: '/v1/sessions', payload });
  t.equal(reply.statusCode, 201);
  const { begin, finish } = await start(t, { issuer, client_secret: 'another' });
  const { to, cookie } = await begin();
  t.match(await finish(await signInAtProvider(to, 'ml'), cookie), { to: problem('provider_unavailable') });
});

t.test('an ID token for another client, of another sign-in, or signed by another is refused', async (t) => {
  const [ownKey, otherKey] = [1, 2].map(() => generateKeyPairSync('rsa', { modulusLength: 2048 }));
  let claims: object = {};
  let key = ownKey;
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo;
    const own = `http://127.0.0.1:${port}`;
    const now = Math.floor(Date.now() / 1000);
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const token = {
      iss: own,
      sub: 'u',
      aud: 'zerofleet',
      iat: now,
      exp: now + 600,
      groups: ['ml'],
      ...claims,
    };
    const signed = `${part({ alg: 'RS256' })}.${part(token)}`;
    const signature = sign('sha256', Buffer.from(signed), key!.privateKey).toString('base64url');
    const jwk = { ...ownKey!.publicKey.export({ format: 'jwk' }), alg: 'RS256', use: 'sig' };
    const answers: Readonly<Record<string, object>> = {
      '/token': { access_token: 'a', token_type: 'bearer', id_token: `${signed}.${signature}` },
      '/jwks': { keys: [jwk] },
    };
    const metadata = {
      issuer: own,
      authorization_endpoint: `${own}/auth`,
      token_endpoint: `${own}/token`,
      jwks_uri: `${own}/jwks`,
    };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(answers[request.url ?? ''] ?? metadata));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => server.close());
  const own = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { begin, finish } = await start(t, { issuer: own });
  for (const [wrong, to, signer = ownKey] of [
    [{}, `${CONSOLE}#/runs`],
    [{}, problem('sign_in_mismatch'), otherKey],
    [{ aud: 'another' }, problem('sign_in_mismatch')],
    [{ nonce: 'another' }, problem('sign_in_mismatch')],
    [{ iss: 'https://another.example' }, problem('sign_in_mismatch')],
    [{ exp: 1 }, problem('sign_in_mismatch')],
  ] as const) {
    const begun = await begin();
    const { searchParams } = new URL(begun.to);
    claims = { nonce: searchParams.get('nonce'), ...wrong };
    key = signer;
    const search = `?code=c&state=${searchParams.get('state')}`;
    t.equal((await finish({ search }, begun.cookie)).to, to, JSON.stringify(wrong));
  }
});

t.test('without a provider there is no such sign-in', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  t.same((await stack.request({ url: '/v1/sign-in-methods' })).json(), { oidc: null });
  t.equal((await stack.app.inject({ url: '/sign-in/oidc' })).statusCode, 404);
});
