/** Numbers of ranks of a run over time. */
import type { CurvePoint } from './curve.js';

export interface Period {
  /** Unix time in milliseconds. */
  from: number;
  to: number;
  ranks: number;
}

/**
 * Returns the periods in which a run trained on one number of ranks without an interruption, oldest first. They reach from their first
 * step to their last one, as far as the curve has them.
 */
export function periodsOf(points: readonly Pick<CurvePoint, 'at' | 'epoch' | 'values'>[]): Period[] {
  const periods: Period[] = [];
  let epoch: number | null = null;
  for (const point of points) {
    const { ranks = null } = point.values;
    if (ranks === null) continue;
    const last = periods.at(-1);
    if (last && point.epoch === epoch && last.ranks === ranks) last.to = point.at;
    else periods.push({ from: point.at, to: point.at, ranks });
    epoch = point.epoch;
  }
  return periods;
}
