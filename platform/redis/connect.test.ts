import t from 'tap';
import { startTestRedis } from '../testing/redis.js';
import { connectRedis, disconnectRedis, redisError, redisOptions } from './connect.js';

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

t.test('connection options', async (t) => {
  t.match(redisOptions('unix:///run/a%20b.sock', 'commands'), {
    path: '/run/a b.sock',
    commandTimeout: 5000,
  });
  t.match(redisOptions('redis://user:p%40ss@host:7000/3', 'queue'), {
    host: 'host',
    port: 7000,
    db: 3,
    username: 'user',
    password: 'p@ss',
    maxRetriesPerRequest: null,
  });
  t.match(redisOptions('rediss://host', 'subscriber'), { tls: {}, autoResubscribe: false });
  t.match(redisOptions('rediss+sentinel://user:secret@a,b:7/main/2?sentinel_password=other', 'commands'), {
    sentinels: [
      { host: 'a', port: 26379 },
      { host: 'b', port: 7 },
    ],
    name: 'main',
    db: 2,
    password: 'secret',
    sentinelPassword: 'other',
    tls: {},
    sentinelTLS: {},
    enableTLSForSentinelMode: true,
  });
  t.match(redisOptions('redis+cluster://a', 'commands'), { Connector: Function });
});

t.test('errors', async (t) => {
  const reply = (message: string) => Object.assign(new Error(message), { name: 'ReplyError' });
  for (const message of ['MISCONF Errors writing to the AOF file', 'LOADING', 'NOAUTH x']) {
    t.equal(redisError(reply(message)).code, 'job_store_unavailable', message);
  }
  t.equal(redisError(reply('OOM command not allowed')).code, 'redis_full');
  t.equal(redisError(reply('ERR wrong number of arguments')).code, 'internal_error');
  t.equal(redisError(new Error('Command timed out')).code, 'job_store_unavailable');
});
