/** Output of `npm start` at a terminal and in the log file of a service, and its end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { until } from '../../platform/testing/waiting.js';
import { descendants } from '../support/processes.js';
import { cleanEnvironment } from '../support/stack.js';
import { Terminal, whyNoTerminal } from '../support/terminal.js';

t.setTimeout(300_000);

t.test('readable lines at a terminal, JSON in a file', { skip: whyNoTerminal() ?? false }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'zf-start-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const env = { ...cleanEnvironment(), ZEROFLEET_PORT: '0', ZEROFLEET_DATA_DIR: join(dir, 'data') };
  const terminal = await Terminal.open(t, { name: 'npm-start', dir, env });
  const start = `npm --prefix ${projectRoot()} start`;
  const redisPid = () => {
    const mine = descendants(process.pid).filter(({ command }) =>
      command.includes(join(dir, 'data', 'redis')),
    );
    return mine[0]?.pid;
  };

  terminal.type(start);
  const shown = await terminal.see(/ready http:\/\/127\.0\.0\.1:\d+\n/);
  t.match(shown, /API key file: /);
  t.match(shown, /console: http:\/\/127\.0\.0\.1:\d+\/#\/sign-in\/zf_code_[\w-]{43} /);
  const redis = redisPid();
  if (redis === undefined) throw new Error('there is no Redis below the terminal');
  process.kill(redis, 'SIGKILL');
  await terminal.see(/\d\d:\d\d:\d\d {2}warn {3}stack: Redis exited unexpectedly; restarting it\n/);
  await until(() => ![undefined, redis].includes(redisPid()));
  const stopped = await terminal.interrupt();
  t.match(stopped, /\nstopping; running jobs are saved/);
  t.notMatch(terminal.record(), '{"level"', 'no JSON');

  terminal.type(`${start} 2> log.txt`);
  await terminal.see(/ready http/);
  await terminal.interrupt();
  const lines = readFileSync(join(dir, 'log.txt'), 'utf8').split('\n');
  const entries = lines.flatMap((line) =>
    line.startsWith('{') ? [JSON.parse(line) as { msg: string }] : [],
  );
  t.ok(
    entries.some(({ msg }) => msg === 'shutting down'),
    'everything, each a line of JSON',
  );
});

t.test('SIGTERM to npm ends all of it', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'zf-start-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const env = { ...cleanEnvironment(), ZEROFLEET_PORT: '0', ZEROFLEET_DATA_DIR: join(dir, 'data') };
  const npm = spawn('npm', ['--prefix', projectRoot(), 'start'], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.teardown(() => npm.kill('SIGKILL'));
  const lines = createInterface({ input: npm.stdout });
  for await (const line of lines) if (line.startsWith('ready ')) break;
  const below = descendants(npm.pid ?? 0);
  t.ok(below.length >= 3, 'the stack, Redis and a worker');
  const exited = once(npm, 'exit');
  npm.kill('SIGTERM');
  await exited;
  const left = () => below.filter(({ pid }) => existsSync(`/proc/${pid}`));
  await until(() => left().length === 0);
  t.strictSame(left(), []);
});
