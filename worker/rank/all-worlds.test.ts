/** With the native core: what any number of ranks wrote, any number of ranks loads and goes on from with the same bits. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import type { Finding } from '../testing/all-worlds-main.js';

const program = fileURLToPath(new URL('../testing/all-worlds-main.js', import.meta.url));
const built = existsSync(join(projectRoot(), 'native', 'build', 'zerofleet.node'));
const skip = built ? false : 'the native core is not built';
const MOST = 8;
const WORLDS = Array.from({ length: MOST }, (_, i) => i + 1);
/** Every rank blocks one while it meets the others. */
const THREADS = 2 * MOST;

t.test(`N → M for all N and M in 1..${MOST}, native`, { skip }, async (t) => {
  const child = fork(program, [t.testdir(), String(MOST)], {
    env: { ...process.env, UV_THREADPOOL_SIZE: String(THREADS) },
    execArgv: [],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const findings: Finding[] = [];
  child.on('message', (finding) => findings.push(finding as Finding));
  const [code] = await once(child, 'close');
  t.equal(code, 0);

  const straight = findings.find((finding) => finding.kind === 'straight');
  if (straight?.kind !== 'straight') throw new Error('no undisturbed run');
  const { saved, last } = straight;
  t.not(saved, last);
  t.strictSame(
    findings.filter(({ kind }) => kind === 'written'),
    WORLDS.map((writers) => ({ kind: 'written', writers, shards: writers, digest: saved })),
  );
  t.strictSame(
    findings.filter(({ kind }) => kind === 'loaded'),
    WORLDS.flatMap((writers) =>
      WORLDS.map((readers) => ({
        kind: 'loaded',
        writers,
        readers,
        digest: saved,
        amplification: 1,
        after: last,
      })),
    ),
  );
});
