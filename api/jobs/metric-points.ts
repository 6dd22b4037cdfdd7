import type { JobMetric } from '../../contracts/index.js';
import type { ReadMetrics } from '../../formats/metric-files/tensorboard.js';
import { valuesOf } from '../../formats/metric-files/values.js';

/**
 * Downsamples items by step to at most `maxPoints`: all items if they are few enough; otherwise the first, the last, and per
 * equally long interval of steps those with the least and the greatest value of each metric in `names`. A spike of one step stays
 * visible. Of a repeated step only the newest item counts. Memory is bounded by the number of chosen items, and a number for each step.
 * @param read reads the items, oldest first; called twice if a recovery has repeated steps
 * @param lastStep approximate end of the range; later items belong to the last interval
 */
export async function choosePoints(read: ReadMetrics, options: PointOptions): Promise<JobMetric[]> {
  const newest = new Map<number, number>();
  let count = 0;
  const chosen = await choose(read(), options, ({ step, seq }) => {
    newest.set(step, seq);
    count += 1;
    return true;
  });
  if (newest.size === count) return chosen;
  return choose(read(), options, ({ step, seq }) => newest.get(step) === seq);
}

/** Chooses from the items for which `counts` is true, of which no two should have one step. */
async function choose(
  metrics: AsyncIterable<JobMetric>,
  { names, maxPoints, from, lastStep }: PointOptions,
  counts: (metric: JobMetric) => boolean,
): Promise<JobMetric[]> {
  const count = Math.max(1, Math.floor((maxPoints - 2) / (2 * names.length)));
  const width = Math.max(1, (lastStep - from + 1) / count);
  const stretches = Array.from({ length: count }, () => new Interval(names));
  let all: JobMetric[] | null = [];
  let first: JobMetric | null = null;
  let last: JobMetric | null = null;
  for await (const metric of metrics) {
    if (!counts(metric)) continue;
    if (all !== null && all.push(metric) > maxPoints) all = null;
    if (first === null || metric.step <= first.step) first = metric;
    if (last === null || metric.step >= last.step) last = metric;
    stretches[Math.min(count - 1, Math.floor((metric.step - from) / width))]?.add(metric);
  }
  const chosen = all ?? [first, ...stretches.flatMap((stretch) => stretch.extremes()), last];
  const distinct = new Set(chosen.filter((metric) => metric !== null));
  return [...distinct].sort((a, b) => a.step - b.step);
}

interface PointOptions {
  /** Names of metrics of steps and of evaluations. */
  names: readonly string[];
  maxPoints: number;
  from: number;
  lastStep: number;
}

interface Measured {
  metric: JobMetric;
  value: number;
}

/** Extremes of some metrics over an interval of steps. */
class Interval {
  private readonly least = new Map<string, Measured>();
  private readonly greatest = new Map<string, Measured>();

  constructor(private readonly names: readonly string[]) {}

  add(metric: JobMetric): void {
    for (const [name, value] of valuesOf(metric)) {
      if (value === null || !this.names.includes(name)) continue;
      if (value <= (this.least.get(name)?.value ?? Number.POSITIVE_INFINITY))
        this.least.set(name, { metric, value });
      if (value >= (this.greatest.get(name)?.value ?? Number.NEGATIVE_INFINITY))
        this.greatest.set(name, { metric, value });
    }
  }

  extremes(): JobMetric[] {
    return [...this.least.values(), ...this.greatest.values()].map(({ metric }) => metric);
  }
}
