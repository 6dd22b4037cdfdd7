import t from 'tap';
import { startTestRedis } from '../testing/redis.js';
import { connectRedis, disconnectRedis, redisError } from './connect.js';

t.test('a connection to a server that is no longer the primary is reopened', async (t) => {
  const server = await startTestRedis();
  const [redis, admin] = [
    await connectRedis(server.url, 'commands'),
    await connectRedis(server.url, 'commands'),
  ];
  t.teardown(async () => {
    await disconnectRedis(redis);
    await disconnectRedis(admin);
    await server.stop();
  });
  const before = await redis.client('ID');
  t.equal(await redis.client('ID'), before);
  // A replica of a missing primary.
  await admin.call('REPLICAOF', '127.0.0.1', '1');
  const error = await redis.set('a', 'b').then(
    () => null,
    (cause: unknown) => redisError(cause),
  );
  t.match(error, { code: 'job_store_unavailable', message: /READONLY/ });
  await admin.call('REPLICAOF', 'NO', 'ONE');
  t.equal(await redis.set('a', 'b'), 'OK');
  t.not(await redis.client('ID'), before, 'over another connection');
});

t.test('other errors keep the connection', async (t) => {
  const server = await startTestRedis();
  const redis = await connectRedis(server.url, 'commands');
  t.teardown(async () => {
    await disconnectRedis(redis);
    await server.stop();
  });
  const before = await redis.client('ID');
  await redis.set('text', 'x');
  await t.rejects(redis.incr('text'), { message: /not an integer/ });
  t.equal(await redis.client('ID'), before);
});
