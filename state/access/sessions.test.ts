/** Browser sessions and the codes that begin them. */

import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { openStores } from '../testing/stores.js';
import { SESSION_MS, SIGN_IN_CODE_MS } from './sessions.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

async function start(t: Test) {
  const { prefix, open } = openStores(t, server.url);
  const redis = await connectRedis(server.url, 'commands');
  t.teardown(() => disconnectRedis(redis));
  const store = await open();
  const key = await store.putApiKey('secret', { name: 'ci', scopes: ['jobs:read'], project: 'team-b' });
  return { store, open, redis, prefix, key };
}

const insecure = { secure: false };

t.test('a code begins one session, however many ask at once', async (t) => {
  const { store, open, key } = await start(t);
  const stores = [store, await open()];
  const before = await store.now();
  const ends = await store.putSignInCode('code', key.id);
  t.ok(ends >= before + SIGN_IN_CODE_MS && ends <= (await store.now()) + SIGN_IN_CODE_MS);
  const tokens = Array.from({ length: 20 }, (_, n) => `token-${n}`);
  const begun = await Promise.all(
    tokens.map((token, n) => stores[n % 2]?.createSession(token, { code: 'code' }, { secure: true })),
  );
  const [session, ...others] = begun.filter((one) => one !== null);
  t.same(others, []);
  t.match(session, { principal: { id: key.id, api_key: key, share: null }, secure: true });
  const winner = `token-${begun.findIndex((one) => one !== null)}`;
  t.same(await store.findSession(winner), session);
  for (const token of tokens.filter((other) => other !== winner))
    t.equal(await store.findSession(token), null);
  t.equal(await store.createSession('late', { code: 'code' }, insecure), null, 'also later');
  t.equal(await store.createSession('never', { code: 'unknown' }, insecure), null);
});

t.test('a session of a key; only hashes are stored, and everything expires', async (t) => {
  const { store, redis, prefix, key } = await start(t);
  await store.putSignInCode('the-code', key.id);
  const session = await store.createSession('the-token', { principal_id: key.id }, insecure);
  t.match(session, { principal: { api_key: key }, secure: false });
  t.ok((session?.expires_at ?? 0) > (await store.now()) + SESSION_MS - 60_000);
  t.equal(await store.findSession('the-code'), null, 'a code is no token');
  t.equal(await store.findApiKey('the-token'), null, 'a token is no key');
  t.equal(await store.createSession('x', { code: 'the-token' }, insecure), null, 'a token is no code');
  const names = (await redis.keys(`${prefix}:*`)).filter((name) => /session|sign-in/.test(name));
  t.equal(names.length, 4);
  for (const name of names) {
    t.notMatch(name, /the-(code|token)/);
    t.ok((await redis.pttl(name)) > 0, name);
  }
  t.equal(await store.createSession('x', { principal_id: `key_${ulid()}` }, insecure), null);
});

t.test('codes and sessions end by themselves; a session can be prolonged', async (t) => {
  const { store, key } = await start(t);
  const codeEndsAt = await store.putSignInCode('short', key.id, 1);
  await store.createSession('short', { principal_id: key.id }, { ...insecure, lifeMs: 1 });
  const long = await store.createSession('long', { principal_id: key.id }, { ...insecure, lifeMs: 60_000 });
  while ((await store.findSession('short')) !== null) await sleep(5);
  // Redis' clock may be set back a little.
  while ((await store.now()) < codeEndsAt + 100) await sleep(5);
  t.equal(await store.createSession('x', { code: 'short' }, insecure), null);
  await store.renewSession('short');
  t.equal(await store.findSession('short'), null, 'what has ended is not prolonged');
  await store.renewSession('long');
  const longer = await store.findSession('long');
  t.ok((longer?.expires_at ?? 0) > (long?.expires_at ?? 0) + 60_000);
});

t.test('a revocation, and a rotation without overlap, end sessions and codes', async (t) => {
  const { store, open, key } = await start(t);
  const other = await open();
  const begin = async () => {
    await store.putSignInCode('code', key.id);
    await store.createSession('token', { principal_id: key.id }, insecure);
    for (const each of [store, other])
      t.match(await each.findSession('token'), { principal: { id: key.id } });
  };
  const ended = async () => {
    t.equal(await store.findSession('token'), null, 'at once where it was changed');
    while ((await other.findSession('token')) !== null) await sleep(1);
    t.equal(await store.createSession('x', { code: 'code' }, insecure), null);
  };
  await begin();
  await store.rotateApiKey(key.id, 'second', 60_000);
  t.not(await store.findSession('token'), null, 'the previous secret is still valid');
  await store.rotateApiKey(key.id, 'third', 0);
  await ended();
  await begin();
  await store.revokeApiKey(key.id);
  await ended();
});

t.test('signing out here, and everywhere', async (t) => {
  const { store, key } = await start(t);
  const foreign = await store.putApiKey('other', { name: 'other', scopes: ['admin'] });
  await store.createSession('foreign', { principal_id: foreign.id }, insecure);
  for (const token of ['one', 'two', 'three']) {
    await store.createSession(token, { principal_id: key.id }, insecure);
    t.not(await store.findSession(token), null);
  }
  await store.putSignInCode('code', key.id);
  await store.endSession('one');
  await store.endSession('unknown');
  t.equal(await store.findSession('one'), null);
  t.not(await store.findSession('two'), null);
  await store.endSessions(key.id);
  for (const token of ['two', 'three']) t.equal(await store.findSession(token), null);
  t.equal(await store.createSession('x', { code: 'code' }, insecure), null);
  t.not(await store.findSession('foreign'), null);
  t.not(await store.findApiKey('secret'), null, 'the key stays');
});

t.test('a key has at most 100 sessions', async (t) => {
  const { store, redis, prefix, key } = await start(t);
  for (let n = 0; n < 105; n += 1)
    await store.createSession(
      `token-${n}`,
      { principal_id: key.id },
      { ...insecure, lifeMs: SESSION_MS + n },
    );
  t.equal(await redis.zcard(`${prefix}:sessions:${key.id}`), 100);
  for (const [n, lives] of [
    [0, false],
    [4, false],
    [5, true],
    [104, true],
  ] as const)
    t.equal((await store.findSession(`token-${n}`)) !== null, lives, `${n}`);
});
