/**
 * Cache of API keys: a change takes effect at once on the server that makes it, and shortly afterwards on all others.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import type { ApiKey } from '../../contracts/index.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { openJobStore } from '../job-store.js';
import { LOOK_UP_BELIEVED_MS, LookUpCache } from './look-up-cache.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

/** Stops the clock by which cached keys expire. @returns a function that advances it by some milliseconds */
function stopClock(t: Test): (ms: number) => void {
  let now = performance.now();
  Object.defineProperty(performance, 'now', { value: () => now, configurable: true });
  t.teardown(() => Reflect.deleteProperty(performance, 'now'));
  return (ms) => {
    now += ms;
  };
}

t.test(
  'a key that one server revokes or rotates is unknown to it at once, to others shortly afterwards',
  async (t) => {
    const prefix = `{${ulid()}}`;
    const one = await openJobStore({ url: server.url, prefix });
    const other = await openJobStore({ url: server.url, prefix });
    t.teardown(() => Promise.all([one.close(), other.close()]));
    const { id } = await one.putApiKey('first', { name: 'a', scopes: ['jobs:read'] });
    // The clock is stopped, so on the other server the message makes the key unknown, not its age.
    stopClock(t);
    const gone = async (secret: string) => {
      t.equal(await one.findApiKey(secret), null, 'at once where it was changed');
      while ((await other.findApiKey(secret)) !== null) await sleep(1);
    };
    for (const store of [one, other]) t.match(await store.findApiKey('first'), { id });
    await one.rotateApiKey(id, 'second', 0);
    await gone('first');
    for (const store of [one, other]) t.match(await store.findApiKey('second'), { id });
    await one.revokeApiKey(id);
    await gone('second');
  },
);

t.test('a change without a message is seen when the cached key has expired', async (t) => {
  const prefix = `{${ulid()}}`;
  const store = await openJobStore({ url: server.url, prefix });
  const redis = await connectRedis(server.url, 'commands');
  t.teardown(() => Promise.all([store.close(), disconnectRedis(redis)]));
  await store.putApiKey('secret', { name: 'a', scopes: ['jobs:read'] });
  const goOn = stopClock(t);
  t.ok(await store.findApiKey('secret'));
  await redis.del(await redis.keys(`${prefix}:api-key:*`));
  t.ok(await store.findApiKey('secret'), 'the cached key is used');
  goOn(LOOK_UP_BELIEVED_MS);
  t.equal(await store.findApiKey('secret'), null);
});

t.test('a look-up that began before a change is not cached after it', async (t) => {
  let now = 0;
  const cache = new LookUpCache<ApiKey>(() => now);
  const key = { id: 'key_1' } as ApiKey;
  const asked = cache.find('a', async () => {
    cache.forget();
    return key;
  });
  t.equal(await asked, key);
  t.equal(await cache.find('a', async () => null), null);
  t.equal(await cache.find('a', async () => key), key);
  t.equal(await cache.find('a', async () => null), key);
  now += LOOK_UP_BELIEVED_MS;
  t.equal(await cache.find('a', async () => null), null);
});

t.test('the number of cached keys is bounded', async (t) => {
  const cache = new LookUpCache<ApiKey>();
  let looked = 0;
  const find = (hash: number) =>
    cache.find(String(hash), async () => {
      looked += 1;
      return { id: String(hash) } as ApiKey;
    });
  for (let hash = 0; hash < 5000; hash += 1) await find(hash);
  await find(4999);
  t.equal(looked, 5000);
  await find(0);
  t.equal(looked, 5001);
});
