import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { projectRoot } from '../../../platform/process/root.js';
import type { Finding } from '../all-worlds-main.js';

const program = fileURLToPath(new URL('../all-worlds-main.js', import.meta.url));
const built = existsSync(join(projectRoot(), 'native', 'build', 'zerofleet.node'));
const skip = built ? false : 'the native core is not built';

/**
 * Tests that checkpoints of 1 to `max_ranks` ranks load on 1 to `max_ranks` ranks.
 * @param trained is trained: a whole model, or adapters over it
 */
export function testAllWorlds(trained: 'whole' | 'adapter', maxRanks: number): void {
  const worlds = Array.from({ length: maxRanks }, (_, i) => i + 1);
  t.test(`N → M for all N and M in 1..${maxRanks}, native: ${trained}`, { skip }, async (t) => {
    const child = fork(program, [t.testdir(), String(maxRanks), trained], {
      // Each rank blocks one thread while it waits for the others.
      env: { ...process.env, UV_THREADPOOL_SIZE: String(2 * maxRanks) },
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
      worlds.map((writers) => ({ kind: 'written', writers, shards: writers, digest: saved })),
    );
    t.strictSame(
      findings.filter(({ kind }) => kind === 'loaded'),
      worlds.flatMap((writers) =>
        worlds.map((readers) => ({
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
