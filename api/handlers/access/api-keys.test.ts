import t from 'tap';
import type { ApiKey, NewApiKey, Page, Problem, Scope } from '../../../contracts/index.js';
import { ADMIN_KEY, startTestStack } from '../../testing/stack.js';

t.test('API keys', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { store } = stack;
  const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
  const create = (payload: object, headers = {}) =>
    stack.request({ method: 'POST', url: '/v1/api-keys', headers, payload });
  const make = async (scopes: Scope[], more = {}) =>
    (await create({ name: 'ci', scopes, ...more })).json<NewApiKey>();
  const status = async (secret: string) =>
    (await stack.request({ url: '/v1/jobs', headers: bearer(secret) })).statusCode;
  const post = (url: string, payload: object, headers = {}) =>
    stack.request({ method: 'POST', url, payload, headers });

  t.test('a key is created, used, rotated and revoked', async (t) => {
    const reply = await create({ name: 'ci', scopes: ['jobs:read'], requests_per_minute: 1000 });
    const { secret, ...key } = reply.json<NewApiKey>();
    t.equal(reply.statusCode, 201);
    t.equal(reply.headers.location, `/v1/api-keys/${key.id}`);
    t.equal(reply.headers['cache-control'], 'no-store');
    t.match(key, { project: 'default', builtin: false, last_used_at: null, requests_per_minute: 1000 });
    t.equal(await status(secret), 200);

    const seen = (await stack.request({ url: `/v1/api-keys/${key.id}` })).json<ApiKey>();
    t.same({ ...seen, last_used_at: null }, key, 'the secret is not shown again');
    const url = `/v1/api-keys/${key.id}/rotate`;
    const second = (await post(url, {})).json<NewApiKey>();
    t.match([await status(secret), await status(second.secret)], [200, 200]);
    const third = (await post(url, { overlap_seconds: 0 })).json<NewApiKey>();
    t.match([await status(secret), await status(second.secret), await status(third.secret)], [401, 401, 200]);
    t.equal(third.id, key.id);

    const gone = await stack.request({ method: 'DELETE', url: `/v1/api-keys/${key.id}` });
    t.equal(gone.statusCode, 204);
    t.equal(await status(third.secret), 401);
    for (const request of [{ url: `/v1/api-keys/${key.id}` }, { method: 'POST' as const, url, payload: {} }])
      t.match((await stack.request(request)).json<Problem>(), { code: 'api_key_not_found', status: 404 });
  });

  t.test('last use of a key is recorded, but not with each request', async (t) => {
    const { secret, id } = await make(['jobs:read']);
    const touched: Promise<void>[] = [];
    const { touchApiKey } = store;
    store.touchApiKey = (used) => {
      const done = touchApiKey(used);
      touched.push(done);
      return done;
    };
    await status(secret);
    await Promise.all(touched);
    t.match(await store.getApiKey(id), { last_used_at: /^20/ });
    await status(secret);
    store.touchApiKey = touchApiKey;
    t.equal(touched.length, 1);
  });

  t.test('a key that has expired', async (t) => {
    const { secret, expires_at } = await make(['jobs:read'], { expires_at: '2999-01-01T00:00:00+01:00' });
    t.equal(expires_at, '2998-12-31T23:00:00.000Z');
    t.equal(await status(secret), 200);
    await store.putApiKey('zf_old', {
      name: 'old',
      scopes: ['admin'],
      expires_at: '2020-01-01T00:00:00.000Z',
    });
    const reply = await stack.request({ url: '/v1/jobs', headers: bearer('zf_old') });
    t.match(reply.json<Problem>(), { status: 401, detail: /expired/ });
  });

  t.test('a key cannot grant a scope that it lacks', async (t) => {
    const headers = await stack.headersIn('team-b');
    const reply = await create(
      {
        name: 'x',
        scopes: ['jobs:read', 'operator'],
        project: 'default',
        expires_at: '2020-01-01T00:00:00Z',
      },
      headers,
    );
    t.match(reply.json<Problem>(), {
      status: 422,
      errors: [
        { pointer: '/project', code: 'project_mismatch', suggestion: 'team-b' },
        { pointer: '/scopes/1', code: 'scope_not_granted' },
        { pointer: '/expires_at', code: 'time_in_past' },
      ],
    });
    const own = (
      await create({ name: 'x', scopes: ['admin'], project: 'team-b' }, headers)
    ).json<NewApiKey>();
    t.equal(own.project, 'team-b');

    const { id } = await make(['jobs:read']);
    for (const method of ['GET', 'DELETE'] as const)
      t.equal((await stack.request({ method, url: `/v1/api-keys/${id}`, headers })).statusCode, 404);
    t.equal((await post(`/v1/api-keys/${id}/rotate`, {}, headers)).statusCode, 404);
    t.not(await store.getApiKey(id), null);
    const foreign = await stack.request({ url: '/v1/api-keys?project=default', headers });
    t.equal(foreign.json<Problem>().code, 'insufficient_scope');
    const theirs = (await stack.request({ url: '/v1/api-keys', headers })).json<Page<ApiKey>>().data;
    t.ok(theirs.every(({ project }) => project === 'team-b') && theirs.length === 2);

    t.test('an operator lists and revokes keys of all projects', async (t) => {
      const listed = (await stack.request({ url: '/v1/api-keys?project=team-b' })).json<Page<ApiKey>>().data;
      t.same(
        listed.map((key) => key.id),
        theirs.map((key) => key.id),
      );
      t.equal((await stack.request({ method: 'DELETE', url: `/v1/api-keys/${own.id}` })).statusCode, 204);
      t.equal(await status(own.secret), 401);
    });
  });

  t.test('the scope operator includes no other scope', async (t) => {
    const { secret } = await make(['operator']);
    for (const url of ['/v1/jobs', '/v1/api-keys', '/v1/datasets'])
      t.equal((await stack.request({ url, headers: bearer(secret) })).statusCode, 403, url);
  });

  t.test('a builtin key is rotated by configuration', async (t) => {
    const { id } = await store.putApiKey(ADMIN_KEY, {
      name: 'first',
      scopes: ['admin', 'operator'],
      builtin: true,
    });
    t.match((await post(`/v1/api-keys/${id}/rotate`, {})).json<Problem>(), {
      code: 'api_key_builtin',
      status: 409,
    });
  });
});
