/** Runs the commands of docs/slurm.md on a real Slurm. */
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { findRedisServer } from '../../platform/redis/server-program.js';
import { freePort } from '../../platform/testing/free-port.js';
import { startSlurm, whyNoSlurm } from '../../platform/testing/slurm.js';
import { cleanEnvironment } from '../support/stack.js';
import { cannotRead } from './reader.js';
import { blocksOf, expectation, runBlocks } from './session.js';

const skip = cannotRead || ((await whyNoSlurm()) ?? false);

/** Characters of the stack's log in the report of a failure. */
const KEPT_CHARACTERS = 2_000;

/** Page for this machine. Its agents become idle sooner. */
async function pageFor(root: string): Promise<string> {
  const [api, redis] = [await freePort(), await freePort()];
  return readFileSync(join(root, 'docs', 'slurm.md'), 'utf8')
    .replaceAll('10.0.0.5', '127.0.0.1')
    .replaceAll('6379', String(redis))
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${api}`)
    .replace(
      'export ZEROFLEET_DATA_DIR',
      `export ZEROFLEET_URL=http://127.0.0.1:${api} ZEROFLEET_PORT=${api}\n$&`,
    )
    .replace('"idle_seconds": 60', '"idle_seconds": 3')
    .replace('npm start --', 'node dist/ops/stack/main.js');
}

/** The server as a program of this name, which the package redis-tools lacks. */
function redisServer(t: Test): string {
  const { path, argv0 } = findRedisServer();
  const dir = t.testdir({ 'redis-server': `#!/bin/bash\nexec -a ${argv0} ${path} "$@"\n` });
  chmodSync(join(dir, 'redis-server'), 0o700);
  return dir;
}

t.test('the page on Slurm', { skip }, async (t) => {
  const slurm = await startSlurm({ nodes: 2 });
  t.teardown(() => slurm.stop());
  const root = projectRoot();
  const bin = redisServer(t);
  for (const time of ['first', 'second']) {
    await t.test(`the ${time} time`, async (t) => {
      const home = t.testdir({});
      const blocks = blocksOf(await pageFor(root));
      const env = {
        ...cleanEnvironment(),
        ...slurm.env,
        HOME: home,
        TMPDIR: home,
        PATH: `${bin}:${process.env.PATH}`,
      };
      const prelude = "trap 'kill %2 && wait %2; kill %1 && wait %1' EXIT";
      const outcomes = await runBlocks(blocks, prelude, { cwd: root, env });
      t.equal(outcomes.length, blocks.length, 'every block was reached');
      for (const [index, { output, code }] of outcomes.entries()) {
        const { line, expected, commands } = blocks[index] ?? { line: 0, expected: null, commands: '' };
        t.equal(code, 0, `line ${line}: ${commands}\n${output}`);
        t.match(output, expected === null ? /^$/ : expectation(expected), `line ${line}`);
      }
      const log = join(home, 'zerofleet-data', 'zerofleet.log');
      if (!t.passing() && existsSync(log)) t.comment(readFileSync(log, 'utf8').slice(-KEPT_CHARACTERS));
      t.equal((await slurm.run('squeue', '--noheader')).trim(), '');
    });
  }
});
