import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import t from 'tap';
import { until } from '../testing/waiting.js';
import { connectRedis, disconnectRedis } from './connect.js';
import { startEmbeddedRedis } from './embedded.js';
import { findRedisServer } from './server-program.js';
import { socketPath } from './socket-path.js';

t.test('serves on a private socket and keeps its data', async (t) => {
  const dir = join(t.testdir({}), 'redis');
  const first = await startEmbeddedRedis({ dir });
  t.match(first.url, /^unix:\/\//);
  const mode = (await stat(new URL(first.url).pathname)).mode & 0o777;
  t.equal(mode, 0o700, 'only this user may connect');
  t.equal((await stat(dir)).mode & 0o777, 0o700);
  const redis = await connectRedis(first.url, 'commands');
  await redis.set('key', 'value');
  t.equal((await redis.config('GET', 'maxmemory-policy'))[1], 'noeviction');
  t.equal((await redis.config('GET', 'port'))[1], '0', 'no TCP port');
  await disconnectRedis(redis);
  await disconnectRedis(redis);
  await first.stop();
  await first.stop();

  const second = await startEmbeddedRedis({ dir });
  const again = await connectRedis(second.url, 'commands');
  t.equal(await again.get('key'), 'value');
  await again.set('key', 'acknowledged');
  process.kill(second.pid, 'SIGKILL');
  await second.exited;
  await disconnectRedis(again);
  await second.stop();
  const third = await startEmbeddedRedis({ dir });
  const last = await connectRedis(third.url, 'commands');
  t.equal(await last.get('key'), 'acknowledged', 'even after SIGKILL');
  await disconnectRedis(last);
  await third.stop();
});

t.test('a directory that is in use', async (t) => {
  const dir = join(t.testdir({}), 'redis');
  const server = await startEmbeddedRedis({ dir });
  await t.rejects(startEmbeddedRedis({ dir }), {
    code: 'invalid_configuration',
    message: new RegExp(`is used by process ${process.pid}`),
  });
  const redis = await connectRedis(server.url, 'commands');
  t.equal(await redis.ping(), 'PONG', 'the first server keeps running');
  await disconnectRedis(redis);
  await server.stop();
});

t.test('an orphaned server is stopped, and its data used', async (t) => {
  const dir = join(t.testdir({}), 'redis');
  const orphan = await startEmbeddedRedis({ dir });
  const redis = await connectRedis(orphan.url, 'commands');
  await redis.set('key', 'value');
  // The recorded owner is replaced by a process that has surely exited.
  const dead = spawn('true');
  await once(dead, 'exit');
  await writeFile(
    join(dir, 'owner.json'),
    JSON.stringify({ pid: dead.pid, redis_pid: orphan.pid, socket: new URL(orphan.url).pathname }),
  );
  const heir = await startEmbeddedRedis({ dir });
  await orphan.exited;
  const again = await connectRedis(heir.url, 'commands');
  t.equal(await again.get('key'), 'value');
  await Promise.all([disconnectRedis(redis), disconnectRedis(again)]);
  await orphan.stop();
  await heir.stop();
});

t.test('the server ends with its parent, even if the whole process group is killed', async (t) => {
  const dir = join(t.testdir({}), 'redis');
  const module = new URL('./embedded.js', import.meta.url).href;
  const script = `const { startEmbeddedRedis } = await import(${JSON.stringify(module)});
    process.send(await startEmbeddedRedis({ dir: ${JSON.stringify(dir)} }).then(({ url }) => ({ url })));`;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [{ url }] = (await once(parent, 'message')) as [{ url: string }];
  const redis = await connectRedis(url, 'commands');
  await redis.set('key', 'acknowledged');
  await disconnectRedis(redis);
  process.kill(-(parent.pid as number), 'SIGKILL');
  const refuses = () =>
    connectRedis(url, 'commands').then(
      (other) => disconnectRedis(other).then(() => false),
      () => true,
    );
  await until(refuses);
  const heir = await startEmbeddedRedis({ dir });
  const again = await connectRedis(heir.url, 'commands');
  t.equal(await again.get('key'), 'acknowledged');
  await disconnectRedis(again);
  await heir.stop();
});

t.test('an unrelated process that reuses the process id of a server is not killed', async (t) => {
  const root = t.testdir({});
  const dir = join(root, 'redis');
  const other = await startEmbeddedRedis({ dir: join(root, 'other') });
  const first = await startEmbeddedRedis({ dir });
  await first.stop();
  const socket = new URL(other.url).pathname;
  await writeFile(join(dir, 'owner.json'), JSON.stringify({ pid: 1, redis_pid: other.pid, socket }));
  const second = await startEmbeddedRedis({ dir });
  const redis = await connectRedis(other.url, 'commands');
  t.equal(await redis.ping(), 'PONG');
  await disconnectRedis(redis);
  await second.stop();
  await other.stop();
});

t.test('a long path', async (t) => {
  const dir = join(t.testdir({}), 'x'.repeat(90), 'y'.repeat(90));
  const server = await startEmbeddedRedis({ dir });
  t.ok(new URL(server.url).pathname.length < 104, 'the socket lies where its path fits');
  const redis = await connectRedis(server.url, 'commands');
  await redis.set('key', 'value');
  await disconnectRedis(redis);
  await server.stop();
  t.ok((await readdir(dir)).length > 0, 'the data lies in the given directory');

  const short = dirname(new URL(server.url).pathname);
  await t.rejects(stat(short), { code: 'ENOENT' }, 'no directory is left elsewhere');
  t.equal(dirname(await socketPath(dir)), short, 'the same directory each time');
  t.teardown(() => rm(short, { recursive: true, force: true }));
  await chmod(short, 0o755);
  await t.rejects(socketPath(dir), { code: 'invalid_configuration', message: /not a private directory/ });
});

t.test('a server that cannot start reports the reason', async (t) => {
  const dir = t.testdir({ appendonlydir: 'not a directory' });
  await t.rejects(startEmbeddedRedis({ dir }), {
    code: 'job_store_unavailable',
    message: /appendonlydir|append/i,
  });
});

t.test('finding the program', async (t) => {
  const make = (name: string) => ({ bin: { [name]: '#!/bin/sh\n' } });
  const dir = join(t.testdir(make('redis-server')), 'bin');
  const notExecutable = findRedisServer(dir);
  t.not(notExecutable.path, join(dir, 'redis-server'), 'a file that is not executable is skipped');
  t.equal(findRedisServer().argv0, 'redis-server');
});
