/**
 * `npm run test:chaos -- --minutes 10 --seed 7`: runs jobs on a fleet of processes on loopback while the API, agents, ranks and
 * Redis are killed or stopped and object store calls fail at random. Prints the faults and findings; exit code 1 if a guarantee
 * was violated.
 */
import { parseArgs } from 'node:util';
import { isClean, runChaos } from './run.js';

export async function main(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { minutes: { type: 'string', default: '10' }, seed: { type: 'string', default: anySeed() } },
  });
  const minutes = Number(values.minutes);
  const seed = Number(values.seed);
  if (!(minutes > 0) || !Number.isSafeInteger(seed)) {
    process.stderr.write('usage: npm run test:chaos -- [--minutes 10] [--seed 7]\n');
    process.exitCode = 2;
    return;
  }
  const report = await runChaos({ seconds: minutes * 60, seed });
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  process.exitCode = isClean(report) ? 0 : 1;
}

const anySeed = () => String(Date.now() % 1_000_000);
