/**
 * `npm run test:property -- --requests 20000 --seed 7`: requests generated from openapi.yaml, good and bad, to a live server.
 * One in 500 has a hostile upload beside it, and there is one of each kind of 64 MiB. Prints how each operation answered and what was found; exit code 1 when anything was, an
 * answer was a server error, the API's event loop was delayed (p99), or its memory has grown.
 */
import { parseArgs } from 'node:util';
import { type PropertyReport, runRequests } from './run.js';

const MOST_DELAY_MS = 50;
const MOST_GROWTH_MIB = 50;

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
  const report = await runRequests({ requests, seed, measured: true });
  const failures = failuresOf(report);
  process.stdout.write(`${JSON.stringify({ ...report, failures }, null, 2)}\n`);
  process.exitCode = failures.length === 0 ? 0 : 1;
}

/** In plain words; none when all is well. */
export function failuresOf({
  findings,
  server_errors,
  event_loop_delay_p99_ms,
  rss_mib,
}: Pick<PropertyReport, 'findings' | 'server_errors' | 'event_loop_delay_p99_ms' | 'rss_mib'>): string[] {
  const failures = findings.map(({ problem }) => problem);
  if (server_errors > 0) failures.push(`${server_errors} answers were server errors`);
  if (event_loop_delay_p99_ms >= MOST_DELAY_MS)
    failures.push(
      `the event loop was delayed by ${event_loop_delay_p99_ms} ms (p99); below ${MOST_DELAY_MS} are accepted`,
    );
  if (rss_mib !== null && rss_mib.after - rss_mib.before > MOST_GROWTH_MIB)
    failures.push(
      `memory grew from ${rss_mib.before} to ${rss_mib.after} MiB; by ${MOST_GROWTH_MIB} at most is accepted`,
    );
  return failures;
}
