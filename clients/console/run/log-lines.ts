/** Log lines of a run: the newest ones, and which of them are shown. */
import type { JobLog } from '../../../contracts/types.js';

export const LINES_HELD = 5_000;
/** Lines on the page at once. */
export const LINES_SHOWN = 500;

export interface LogFilter {
  text: string;
  /** `all`, `worker`, or a rank */
  rank: string;
  stream: 'all' | JobLog['stream'];
}

export function withLines(lines: readonly JobLog[], added: readonly JobLog[]): JobLog[] {
  return [...lines, ...added].slice(-LINES_HELD);
}

/** Returns the newest lines that pass, oldest first. */
export function shownLines(lines: readonly JobLog[], { text, rank, stream }: LogFilter): JobLog[] {
  const wanted = text.toLowerCase();
  return lines
    .filter(
      (line) =>
        (rank === 'all' || String(line.rank ?? 'worker') === rank) &&
        (stream === 'all' || line.stream === stream) &&
        line.message.toLowerCase().includes(wanted),
    )
    .slice(-LINES_SHOWN);
}

/** Ranks that have lines, the worker first. */
export function ranksIn(lines: readonly JobLog[]): string[] {
  const ranks = new Set(lines.map(({ rank }) => rank));
  return [...ranks].sort((a, b) => (a ?? -1) - (b ?? -1)).map((rank) => String(rank ?? 'worker'));
}
