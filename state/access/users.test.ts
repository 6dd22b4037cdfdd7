/** Users of an OpenID provider, and their sessions. */

import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { startTestRedis } from '../../platform/testing/redis.js';
import { openStores } from '../testing/stores.js';
import type { UserInput } from './users.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

const ADA: UserInput = {
  issuer: 'https://login.example.com',
  subject: 'u1',
  name: 'Ada',
  email: 'ada@example.com',
  project: 'team-b',
  scopes: ['jobs:read', 'models'],
};
const HOUR_MS = 3_600_000;
const insecure = { secure: false };

async function start(t: Test) {
  const { open } = openStores(t, server.url);
  return [await open(), await open()] as const;
}

t.test('a user is a principal, the same at each sign-in', async (t) => {
  const [store, other] = await start(t);
  const ada = await store.putUser(ADA, HOUR_MS);
  const { id, expires_at } = ada;
  t.match(id, /^usr_[0-9A-HJKMNP-TV-Z]{26}$/);
  t.match(ada, {
    name: 'Ada',
    project: 'team-b',
    scopes: ['jobs:read', 'models'],
    api_key: null,
    share: null,
    user: { id, subject: 'u1', name: 'Ada', email: 'ada@example.com', expires_at },
  });
  await store.createSession('token', { principal_id: id }, insecure);
  t.same((await other.findSession('token'))?.principal, ada);
  t.equal((await store.putUser({ ...ADA, name: 'Ada L.' }, HOUR_MS)).id, id);
  t.not((await store.putUser({ ...ADA, issuer: 'https://another.example' }, HOUR_MS)).id, id);
  t.not((await store.putUser({ ...ADA, subject: 'u2' }, HOUR_MS)).id, id);
  t.equal(await store.findPrincipal(id), null, 'an id is no secret');
});

t.test('a sign-in replaces the rights of earlier ones', async (t) => {
  const [store, other] = await start(t);
  const { id } = await store.putUser(ADA, HOUR_MS);
  await store.createSession('token', { principal_id: id }, insecure);
  t.match(await other.findSession('token'), { principal: { scopes: ['jobs:read', 'models'] } });
  await store.putUser({ ...ADA, scopes: ['datasets'] }, HOUR_MS);
  t.strictSame(
    (await store.findSession('token'))?.principal.scopes,
    ['datasets'],
    'at once where it was changed',
  );
  while ((await other.findSession('token'))?.principal.scopes[0] !== 'datasets') await sleep(1);
});

t.test('a user ends by itself, and the sessions everywhere at once', async (t) => {
  const [store] = await start(t);
  const { id } = await store.putUser(ADA, HOUR_MS);
  for (const token of ['one', 'two']) await store.createSession(token, { principal_id: id }, insecure);
  await store.endSessions(id);
  for (const token of ['one', 'two']) t.equal(await store.findSession(token), null);
  await store.createSession('three', { principal_id: id }, insecure);
  await store.putUser(ADA, 1);
  while ((await store.findSession('three')) !== null) await sleep(5);
  t.equal(await store.createSession('four', { principal_id: id }, insecure), null);
});
