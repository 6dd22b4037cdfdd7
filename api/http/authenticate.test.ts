import t from 'tap';
import { parse } from 'yaml';
import type { Problem, Scope } from '../../contracts/index.js';
import { ADMIN_KEY, startTestStack } from '../testing/stack.js';

interface OperationDocument {
  security?: { bearerAuth?: Scope[] }[];
}

/** Every key may read its own description, and begin and end sessions of itself. */
const OF_EVERY_KEY = ['/v1/me', '/v1/sign-in-codes', '/v1/sessions', '/v1/sessions/current'];

t.test('keys and scopes', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { app, store } = stack;
  const document = parse(app.services.contract.text) as {
    paths: Record<string, Record<string, OperationDocument>>;
  };
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    ['get', 'put', 'post', 'patch', 'delete'].flatMap((method) =>
      item[method] ? [{ path, method, ...item[method] }] : [],
    ),
  );
  const send = (method: string, path: string, headers: Record<string, string>) => {
    const url = path
      .replace('{job_id}', `job_${'0'.repeat(26)}`)
      .replace('{dataset_id}', `ds_${'0'.repeat(26)}`)
      .replace('{key_id}', `key_${'0'.repeat(26)}`);
    return app.inject({ method: method.toUpperCase() as 'GET', url, headers });
  };

  t.test('every operation of the contract that requires a key refuses a request without one', async (t) => {
    for (const { path, method, security } of operations) {
      const reply = await send(method, path, {});
      if (security?.length === 0) t.not(reply.statusCode, 401, `${method} ${path}`);
      else t.match(reply.json<Problem>(), { code: 'unauthenticated', status: 401 }, `${method} ${path}`);
    }
    t.equal(operations.length, app.services.contract.operations.size);
  });

  t.test('every operation refuses a key without its scopes and accepts a key with only them', async (t) => {
    const scopes: Scope[] = ['jobs:read', 'jobs:write', 'datasets', 'models', 'operator'];
    for (const { path, method, security } of operations.filter((o) => o.security?.length !== 0)) {
      const wanted = security?.[0]?.bearerAuth ?? [];
      t.equal(wanted.length === 0, OF_EVERY_KEY.includes(path), `${method} ${path} names a scope`);
      for (const given of [...scopes.map((scope) => [scope]), wanted]) {
        const reply = await send(method, path, await stack.headersOf(...given));
        const title = `${method} ${path} with ${given}`;
        if (wanted.every((scope) => given.includes(scope))) t.not(reply.statusCode, 403, title);
        else t.match(reply.json<Problem>(), { code: 'insufficient_scope', status: 403 }, title);
      }
    }
  });

  t.test('malformed keys', async (t) => {
    const headers = [
      '',
      'Bearer',
      'Bearer ',
      'Bearer nonsense',
      `Basic ${ADMIN_KEY}`,
      `Bearer ${ADMIN_KEY}x`,
      `Bearer a ${ADMIN_KEY}`,
    ];
    for (const authorization of headers) {
      const reply = await send('get', '/v1/jobs', { authorization });
      t.equal(reply.statusCode, 401, authorization);
      t.match(reply.headers['www-authenticate'], /^Bearer/);
    }
    t.equal((await send('get', '/v1/jobs', { authorization: `bearer ${ADMIN_KEY}` })).statusCode, 200);
  });

  t.test('a revoked key', async (t) => {
    const headers = await stack.headersOf('jobs:read');
    t.equal((await send('get', '/v1/jobs', headers)).statusCode, 200);
    const [key] = (await store.listApiKeys()).data.filter(({ scopes }) => scopes.join() === 'jobs:read');
    await store.revokeApiKey(key?.id ?? '');
    t.equal((await send('get', '/v1/jobs', headers)).statusCode, 401);
  });

  t.test('a request without a key is refused before its body is read', async (t) => {
    const reply = await app.inject({
      method: 'POST',
      url: '/v1/jobs',
      headers: { 'content-type': 'application/json' },
      payload: '{"not json',
    });
    t.equal(reply.statusCode, 401);
  });
});
