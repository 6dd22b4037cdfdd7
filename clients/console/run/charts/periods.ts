/** Numbers of ranks of a run over time. */
import type { Attempt } from '../../../../contracts/types.js';

export interface Period {
  /** Unix time in milliseconds. */
  from: number;
  to: number;
  ranks: number;
}

/**
 * Returns the periods in which ranks trained, oldest first.
 * @param attempts newest first
 * @param now Unix time in milliseconds: the end of a period that goes on
 */
export function periodsOf(attempts: readonly Pick<Attempt, 'generations'>[], now: number): Period[] {
  return attempts
    .toReversed()
    .flatMap(({ generations }) => generations)
    .map(({ world_size, started_at, ended_at }) => {
      const from = Date.parse(started_at);
      // Clocks of machines may differ.
      return { from, to: Math.max(from, ended_at === null ? now : Date.parse(ended_at)), ranks: world_size };
    });
}

/**
 * Returns at most `most` + 1 periods, oldest first. Divides the whole time into equal parts, and merges the periods
 * that begin in one part into one with their largest number of ranks.
 */
export function gathered(periods: readonly Period[], most: number): Period[] {
  const [first, last] = [periods[0], periods.at(-1)];
  if (first === undefined || last === undefined || periods.length <= most) return [...periods];
  const width = Math.max(1, last.to - first.from) / most;
  const parts = new Map<number, Period>();
  for (const period of periods) {
    const part = Math.floor((period.from - first.from) / width);
    const { from, ranks } = parts.get(part) ?? period;
    parts.set(part, { from, to: period.to, ranks: Math.max(ranks, period.ranks) });
  }
  return [...parts.values()];
}
