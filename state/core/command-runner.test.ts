import { Redis } from 'ioredis';
import t, { type Test } from 'tap';
import { startTestRedis } from '../../platform/testing/redis.js';
import { CommandRunner } from './command-runner.js';
import { commandLibrary } from './library.js';

async function connect(t: Test): Promise<{ redis: Redis; runner: CommandRunner }> {
  const server = await startTestRedis();
  const redis = new Redis({ path: new URL(server.url).pathname });
  t.teardown(async () => {
    redis.disconnect();
    await server.stop();
  });
  return { redis, runner: new CommandRunner(redis, '{test}') };
}

async function libraries(redis: Redis): Promise<string[]> {
  const listed = (await redis.function('LIST')) as string[][];
  return listed.map(([, name]) => name as string).sort();
}

async function loads(redis: Redis): Promise<number> {
  const stats = await redis.info('commandstats');
  return Number(/cmdstat_function\|load:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

t.test('commands run on a server without the library, also after a flush', async (t) => {
  const { redis, runner } = await connect(t);
  const read = () => runner.run('get_jobs', { ids: [], known: [] });
  t.same(await read(), []);
  t.same(await libraries(redis), [commandLibrary().name]);
  await redis.function('FLUSH');
  const before = await loads(redis);
  t.same(await Promise.all([read(), read(), read()]), [[], [], []]);
  t.equal((await loads(redis)) - before, 1, 'concurrent calls load it once');
});

t.test('errors of commands are typed, faults of calls are internal errors', async (t) => {
  const { runner } = await connect(t);
  await t.rejects(runner.run('append_event', { job_id: 'none', epoch: 1 }), { code: 'job_not_found' });
  await t.rejects(runner.run('append_event', {}), { code: 'internal_error' }, 'a wrong call is not a reply');
});

t.test('a Redis without functions is refused', async (t) => {
  const fcallRo = async () => {
    throw new Error("ERR unknown command 'fcall_ro', with args beginning with: ");
  };
  const runner = new CommandRunner({ fcall_ro: fcallRo } as unknown as Redis, '{test}');
  await t.rejects(runner.run('get_jobs', {}), { code: 'invalid_configuration', message: /Redis 7/ });
});

t.test('libraries of other versions are kept for a roll-out, and deleted when there are many', async (t) => {
  const { redis, runner } = await connect(t);
  const own = commandLibrary().name;
  const add = (name: string) =>
    redis.function(
      'LOAD',
      `#!lua name=${name}\nredis.register_function('${name}_f', function() return 1 end)`,
    );
  const reload = async () => {
    if ((await libraries(redis)).includes(own)) await redis.function('DELETE', own);
    await runner.run('get_jobs', { ids: [], known: [] });
  };
  const versions = ['zerofleet_1', 'zerofleet_2', 'zerofleet_3', 'zerofleet_4'];
  for (const name of ['other', ...versions]) await add(name);
  await reload();
  t.same(await libraries(redis), ['other', ...versions, own].sort());
  await add('zerofleet_5');
  await reload();
  t.same(await libraries(redis), ['other', own].sort(), 'a library of another program stays');
});
