/** A sweep as its page shows it. */
import { compareFigures } from '../../../contracts/evaluation-metrics.js';
import type { Sweep, SweepRun } from '../../../contracts/types.js';

export const ENDED: readonly SweepRun['state'][] = ['stopped', 'succeeded', 'failed', 'cancelled'];

/** Value of a run at the last rung that it reached; null for one that is not a number, undefined before the first. */
export const lastValue = (run: SweepRun) => run.evaluations.at(-1)?.value;

/** The runs that came furthest first, of these the best. */
export function ranked({ runs, metric }: Pick<Sweep, 'runs' | 'metric'>): SweepRun[] {
  const order = (a: SweepRun, b: SweepRun) => compareFigures(metric, lastValue(a), lastValue(b));
  return [...runs].sort((a, b) => b.evaluations.length - a.evaluations.length || order(a, b));
}

/** `5 of 12 ended` and the rungs of successive halving. */
export function progressText({ runs, rungs }: Pick<Sweep, 'runs' | 'rungs'>): string {
  const ended = runs.filter(({ state }) => ENDED.includes(state)).length;
  const stops = rungs.flatMap(({ step, runs: count }) =>
    step === null ? [] : [`${count} until step ${step}`],
  );
  const last = rungs.at(-1)?.runs;
  const how = stops.length === 0 ? '' : ` · ${[...stops, `${last} to the end`].join(', ')}`;
  return `${ended} of ${runs.length} runs have ended${how}`;
}

/** The shortest name of a field: its last part. */
export const fieldLabel = (field: string) => field.split(/(?<!\\)\./).at(-1) ?? field;
