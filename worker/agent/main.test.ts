import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import t from 'tap';
import { programPath } from '../../platform/process/programs.js';
import { startTestRedis } from '../../platform/testing/redis.js';

const program = programPath('worker/agent/main');

function start(env: Record<string, string>): ChildProcess {
  const base = { PATH: process.env.PATH ?? '', ZEROFLEET_LOG_LEVEL: 'warn' };
  return fork(program, [], {
    env: { ...base, ...env },
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
}

async function errorOutput(child: ChildProcess): Promise<string> {
  let text = '';
  for await (const chunk of child.stderr ?? []) text += chunk;
  return text;
}

t.test('the program reports readiness and exits cleanly on SIGTERM', async (t) => {
  const redis = await startTestRedis();
  t.teardown(() => redis.stop());
  const child = start({ ZEROFLEET_REDIS_URL: redis.url, ZEROFLEET_DATA_DIR: t.testdir() });
  const [message] = await once(child, 'message');
  t.strictSame(message, { kind: 'ready' });
  child.kill('SIGTERM');
  t.strictSame(await once(child, 'exit'), [0, null]);
});

t.test('it exits when its parent is gone', async (t) => {
  const redis = await startTestRedis();
  t.teardown(() => redis.stop());
  const child = start({ ZEROFLEET_REDIS_URL: redis.url, ZEROFLEET_DATA_DIR: t.testdir() });
  await once(child, 'message');
  child.disconnect();
  t.strictSame(await once(child, 'exit'), [0, null]);
});

t.test('a missing or unavailable Redis and an unknown variable are reported', async (t) => {
  for (const [env, text] of [
    [{}, /needs ZEROFLEET_REDIS_URL/],
    [{ ZEROFLEET_REDIS_URL: 'unix:///nowhere/redis.sock' }, /Redis is not available/],
    [{ ZEROFLEET_SLOT: '3' }, /ZEROFLEET_SLOTS/],
  ] as const) {
    const child = start({ ZEROFLEET_DATA_DIR: t.testdir(), ...env });
    const [output, [code]] = await Promise.all([errorOutput(child), once(child, 'exit')]);
    t.equal(code, 1);
    t.match(output, text);
  }
});
