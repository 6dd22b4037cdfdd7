import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Redis } from 'ioredis';
import t from 'tap';
import { ERROR_CATALOGUE } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { COMMANDS, CommandRunner, commandSource } from './scripts.js';

const state = join(projectRoot(), 'state');
const files = readdirSync(state, { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('.lua'),
);
const commandFiles = files.filter((path) => !path.startsWith('core/'));
const nameOf = (path: string) => basename(path, '.lua');

t.test('every command file is known, and every known command has a file', async (t) => {
  t.same(commandFiles.map(nameOf).sort(), [...COMMANDS].sort());
});

t.test('every command documents its arguments, replies and errors', async (t) => {
  for (const name of COMMANDS) {
    const own = readFileSync(join(state, commandFiles.find((path) => nameOf(path) === name) ?? ''), 'utf8');
    const [header = ''] = own.split('--- @include');
    t.match(header, /^-- call: /m, `${name}: call`);
    t.match(header, /^-- Returns: ok/m, `${name}: returns`);
    const source = commandSource(name);
    t.notMatch(source, /^--- @include/m, `${name}: includes are put in place`);
    for (const [, code = ''] of own.matchAll(/failure\('(\w+)'/g)) {
      t.ok(code in ERROR_CATALOGUE, `${name}: ${code} is in the catalogue`);
      t.ok(header.includes(code), `${name}: ${code} is in the header`);
    }
  }
});

t.test('only finish_job, and the end of an epoch, mark a job final', async (t) => {
  const final = COMMANDS.filter((name) => /'final', '1'/.test(commandSource(name)));
  t.strictSame(final.sort(), ['finish_job', 'release_attempt', 'requeue_abandoned']);
});

t.test('commands run on a server without cached scripts, also after a flush', async (t) => {
  const server = await startTestRedis();
  t.teardown(() => server.stop());
  const redis = new Redis({ path: new URL(server.url).pathname });
  t.teardown(() => redis.disconnect());
  const runner = new CommandRunner(redis, '{test}');
  t.same(await runner.run('get_jobs', { ids: [], known: [] }), []);
  await redis.script('FLUSH');
  t.same(await runner.run('get_jobs', { ids: [], known: [] }), []);
  await t.rejects(runner.run('append_event', { job_id: 'none', epoch: 1 }), { code: 'job_not_found' });
  await t.rejects(runner.run('append_event', {}), { code: 'internal_error' }, 'a wrong call is not a reply');
});
