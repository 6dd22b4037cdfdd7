/**
 * `npm run test:property -- --requests 20000 --seed 7`: requests generated from openapi.yaml, good and bad, to a live server.
 * Prints how each operation answered and what was found; exit code 1 when anything was.
 */
import { parseArgs } from 'node:util';
import { runRequests } from './run.js';

export async function main(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      requests: { type: 'string', default: '20000' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    },
  });
  const [requests, seed] = [Number(values.requests), Number(values.seed)];
  if (!Number.isSafeInteger(requests) || requests < 1 || !Number.isSafeInteger(seed)) {
    process.stderr.write('usage: npm run test:property -- [--requests 20000] [--seed 7]\n');
    process.exitCode = 2;
    return;
  }
  const report = await runRequests({ requests, seed });
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  process.exitCode = report.findings.length === 0 ? 0 : 1;
}
