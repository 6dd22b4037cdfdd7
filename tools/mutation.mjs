// npm run test:mutation -- lease autoscaler: mutation testing of safety-critical code. Injects faults one at a time and
// reports which ones the tests detect. Without names it covers all areas of tools/mutation/areas.mjs. docs/mutation.md
// lists known survivors with the reason why they are equivalent. npm downloads StrykerJS on demand, because nothing
// else needs it.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { capture } from './bootstrap/command.mjs';
import { runMain, SetupError } from './bootstrap/errors.mjs';
import { npmCommand } from './bootstrap/npm-packages.mjs';
import { inRoot } from './bootstrap/paths.mjs';
import { setUp } from './bootstrap/setup.mjs';
import { AREAS } from './mutation/areas.mjs';
import { MIN_KILLED_SHARE, summaryOf } from './mutation/summary.mjs';

const VERSION = '9.6.1';
const PACKAGES = ['core', 'tap-runner'].map((name) => `--package=@stryker-mutator/${name}@${VERSION}`);

function chosenAreas() {
  const chosen = process.argv.slice(2);
  const unknown = chosen.find((name) => !(name in AREAS));
  if (unknown) throw new SetupError(`no area '${unknown}'; there are: ${Object.keys(AREAS).join(', ')}`);
  return chosen.length > 0 ? chosen : Object.keys(AREAS);
}

/** Stops the Redis servers of tests that were killed after a timeout. */
function endServers(dir) {
  for (const name of readdirSync(dir)) {
    try {
      const { redis_pid } = JSON.parse(readFileSync(join(dir, name, 'owner.json'), 'utf8'));
      process.kill(redis_pid, 'SIGKILL');
    } catch {
      // Its test has stopped it.
    }
  }
}

async function runArea(area) {
  const dir = mkdtempSync(join(tmpdir(), 'zf-mutation-'));
  try {
    const stryker = [...npmCommand(), 'exec', '--yes', ...PACKAGES, '--', 'stryker', 'run'];
    const { output } = await capture([...stryker, 'tools/mutation/stryker.config.mjs'], {
      env: { ZF_MUTATION_AREA: area, TMPDIR: dir },
      onLine: (line) => line.startsWith('Mutation testing') && console.error(`  ${line}`),
    });
    const report = inRoot('.build', 'mutation', `${area}.json`);
    try {
      return summaryOf(JSON.parse(readFileSync(report, 'utf8')));
    } catch (error) {
      throw new SetupError(`${output}\n${error.message}`);
    }
  } finally {
    endServers(dir);
    rmSync(dir, { recursive: true, force: true });
  }
}

await runMain(async () => {
  const areas = chosenAreas();
  await setUp({ development: true });
  for (const area of areas) {
    rmSync(inRoot('.build', 'mutation', `${area}.json`), { force: true });
    console.log(`\n${area}`);
    const { lines, caught } = await runArea(area);
    console.log(lines.join('\n'));
    if (caught < MIN_KILLED_SHARE) process.exitCode = 1;
  }
});
