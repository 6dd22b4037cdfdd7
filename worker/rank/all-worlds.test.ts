/** Tests with the native core that a checkpoint of any number of ranks loads on any number of ranks and continues with the same bits. */
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
const MAX_RANKS = 8;
const WORLDS = Array.from({ length: MAX_RANKS }, (_, i) => i + 1);
/** Each rank blocks one thread while it waits for the others. */
const THREADS = 2 * MAX_RANKS;

for (const what of ['whole', 'adapter'] as const) test(what);

/** @param what is trained: a whole model, or adapters over it */
function test(what: 'whole' | 'adapter') {
  t.test(`N → M for all N and M in 1..${MAX_RANKS}, native: ${what}`, { skip }, async (t) => {
    const child = fork(program, [t.testdir(), String(MAX_RANKS), what], {
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
}
