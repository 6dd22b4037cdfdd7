/**
 * `npm run test:property -- --requests 20000 --seed 7`: sends requests generated from openapi.yaml, valid and invalid,
 * to a live server. One in 500 is accompanied by a hostile upload, and each kind of upload occurs once with 64 MiB.
 * Prints the statuses of each operation and the findings. The exit code is 1 after a finding, a server error, a lost
 * lease, a delay of the API's event loop (p99), or a growth of its memory.
 */
import { parseArgs } from 'node:util';
import { type PropertyReport, runRequests } from './run.js';

const MAX_DELAY_MS = 50;
const MAX_GROWTH_MIB = 50;

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

/** Failures in plain text; empty if there are none. */
export function failuresOf({
  findings,
  server_errors,
  event_loop_delay_p99_ms,
  lease_error,
  rss_mib,
}: Pick<
  PropertyReport,
  'findings' | 'server_errors' | 'event_loop_delay_p99_ms' | 'lease_error' | 'rss_mib'
>): string[] {
  const failures = findings.map(({ problem }) => problem);
  if (server_errors > 0) failures.push(`${server_errors} answers were server errors`);
  if (lease_error !== null) failures.push(`the lease of a job was lost: ${lease_error}`);
  if (event_loop_delay_p99_ms >= MAX_DELAY_MS)
    failures.push(
      `the event loop was delayed by ${event_loop_delay_p99_ms} ms (p99); below ${MAX_DELAY_MS} are accepted`,
    );
  if (rss_mib !== null && rss_mib.after - rss_mib.before > MAX_GROWTH_MIB)
    failures.push(
      `memory grew from ${rss_mib.before} to ${rss_mib.after} MiB; by ${MAX_GROWTH_MIB} at most is accepted`,
    );
  return failures;
}
