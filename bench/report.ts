import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';

/** Middle value (mean of the two middle ones for an even count). NaN for no values. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[sorted.length >> 1] ?? Number.NaN;
  const lower = sorted[(sorted.length - 1) >> 1] ?? Number.NaN;
  return (lower + upper) / 2;
}

function git(...args: string[]): string {
  return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
}

function commit(): string {
  try {
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', '-uno') === '' ? '' : '+');
  } catch {
    return 'unknown';
  }
}

/** Prints one measurement as a JSON line with the benchmark, the commit ("+" = with local changes) and the CPU. */
export function report(bench: string, measurement: Record<string, unknown>): void {
  const line = { bench, commit: commit(), cpu: cpus()[0]?.model.trim() ?? 'unknown', ...measurement };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
