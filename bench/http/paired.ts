import { median } from '../report.js';
import type { LoadResult } from './load.js';

interface PairedResult extends LoadResult {
  bare: LoadResult;
  /** Ratio of requests per second: median over the rounds. */
  share: number;
}

/**
 * Alternates both measurements for `rounds` rounds, because a shared machine has slow minutes. One round of each before
 * is not counted, because a new server runs code that is not compiled yet.
 */
export async function measurePaired(
  rounds: number,
  ours: () => Promise<LoadResult>,
  bare: () => Promise<LoadResult>,
): Promise<PairedResult> {
  const measured: { ours: LoadResult; bare: LoadResult }[] = [];
  for (let round = 0; round <= rounds; round++) {
    const one = { bare: await bare(), ours: await ours() };
    if (round > 0) measured.push(one);
  }
  const shares = measured.map(({ ours, bare }) => ours.per_second / bare.per_second);
  return {
    ...medianOf(measured.map(({ ours }) => ours)),
    bare: medianOf(measured.map(({ bare }) => bare)),
    share: Number(median(shares).toFixed(3)),
  };
}

function medianOf(results: readonly LoadResult[]): LoadResult {
  const medianField = (name: keyof LoadResult) =>
    Number(median(results.map((result) => result[name])).toFixed(2));
  return {
    per_second: Math.round(medianField('per_second')),
    p50_ms: medianField('p50_ms'),
    p99_ms: medianField('p99_ms'),
  };
}
