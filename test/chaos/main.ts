/**
 * `npm run test:chaos -- --minutes 10 --seed 7 --redis sentinel` runs jobs on a fleet of processes on loopback.
 * Meanwhile it kills or stops the API, agents, ranks and Redis, and lets calls of the object store fail at random.
 * Prints the faults and findings; the exit code is 1 if a guarantee was violated.
 */
import { parseArgs } from 'node:util';
import { REDIS_KINDS } from './redis.js';
import { isClean, runChaos } from './run.js';

export async function main(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: anySeed() },
      redis: { type: 'string', default: 'private' },
    },
  });
  const minutes = Number(values.minutes);
  const seed = Number(values.seed);
  const redis = REDIS_KINDS.find((kind) => kind === values.redis);
  if (!(minutes > 0) || !Number.isSafeInteger(seed) || !redis) {
    process.stderr.write(
      `usage: npm run test:chaos -- [--minutes 10] [--seed 7] [--redis ${REDIS_KINDS.join('|')}]\n`,
    );
    process.exitCode = 2;
    return;
  }
  const report = await runChaos({ seconds: minutes * 60, seed, redis });
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  process.exitCode = isClean(report) ? 0 : 1;
}

const anySeed = () => String(Date.now() % 1_000_000);
