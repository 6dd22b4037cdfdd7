/** Tests of the autoscaler as a program. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import t from 'tap';
import { programPath } from '../platform/process/programs.js';
import { startTestRedis } from '../platform/testing/redis.js';

const PROGRAM = programPath('autoscaler/main');

function run(env: Record<string, string>) {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('ZEROFLEET_'));
  const child = spawn(process.execPath, [PROGRAM], {
    env: { ...Object.fromEntries(own), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  return { child, exited };
}

t.test('an invalid configuration is refused with the required setting', async (t) => {
  for (const [env, message] of [
    [{}, /an autoscaler alone needs ZEROFLEET_REDIS_URL/],
    [
      { ZEROFLEET_REDIS_URL: 'unix:///none', ZEROFLEET_AUTOSCALE_CAPACITY: 'aws' },
      /ZEROFLEET_AUTOSCALE_CAPACITY=aws needs ZEROFLEET_AUTOSCALE_POOLS/,
    ],
    [
      { ZEROFLEET_REDIS_URL: 'unix:///none', ZEROFLEET_AUTOSCALE_CAPACITY: 'slurm' },
      /ZEROFLEET_AUTOSCALE_CAPACITY=slurm needs ZEROFLEET_AUTOSCALE_POOLS: the pools and the Slurm options/,
    ],
    [
      {
        ZEROFLEET_REDIS_URL: 'unix:///none',
        ZEROFLEET_AUTOSCALE_CAPACITY: 'kubernetes',
        ZEROFLEET_AUTOSCALE_POOLS: JSON.stringify([{ pool: 'a', types: [{ name: 'g5', slots: 1, max: 1 }] }]),
      },
      /the type g5 of the pool a declares no pod; add `kubernetes` with an `image`/,
    ],
    [
      {
        ZEROFLEET_REDIS_URL: 'unix:///none',
        ZEROFLEET_AUTOSCALE_CAPACITY: 'aws',
        ZEROFLEET_AUTOSCALE_POOLS: JSON.stringify(
          ['a', 'b'].map((pool) => ({ pool, types: [{ name: 'g5', slots: 1, max: 1 }] })),
        ),
      },
      /names the Auto Scaling group g5 twice/,
    ],
    [{ ZEROFLEET_AUTOSCALE_POOLS: '[{}]' }, /ZEROFLEET_AUTOSCALE_POOLS: .*an example is/],
    [{ ZEROFLEET_REDIS_URL: 'unix:///none/redis.sock' }, /Redis is not available/],
  ] as const) {
    const { child, exited } = run(env);
    let said = '';
    child.stderr.on('data', (text) => {
      said += text;
    });
    t.equal(await exited, 1);
    t.match(said, message);
  }
});

t.test('logs its start, serves metrics, and ends on SIGTERM', async (t) => {
  const redis = await startTestRedis();
  t.teardown(() => redis.stop());
  const { child, exited } = run({
    ZEROFLEET_REDIS_URL: redis.url,
    ZEROFLEET_DATA_DIR: t.testdir(),
    ZEROFLEET_METRICS_PORT: '0',
  });
  t.teardown(() => child.kill('SIGKILL'));
  let url = '';
  for await (const line of createInterface({ input: child.stdout })) {
    const entry = JSON.parse(line);
    t.equal(entry.name, 'autoscaler');
    if (entry.msg === 'autoscaler started') url = entry.url;
    if (entry.msg === 'became leader') break;
  }
  t.match(await (await fetch(`${url}/healthz`)).json(), { status: 'ok' });
  let text = '';
  while (!/^zerofleet_autoscaler_reconcile_duration_seconds_count [1-9]/m.test(text))
    text = await (await fetch(`${url}/metrics`)).text();
  t.match(text, /^zerofleet_autoscaler_desired_ranks\{pool="default"\} 0$/m);
  t.equal((await fetch(`${url}/other`)).status, 404);
  child.kill('SIGTERM');
  t.equal(await exited, 0);
});
