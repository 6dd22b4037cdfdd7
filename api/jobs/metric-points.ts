import type { JobMetric } from '../../contracts/index.js';
import { valuesOf } from '../../platform/metric-files/values.js';

/**
 * Downsamples items by step to at most `maxPoints`: all items if they are few enough; otherwise the first, the last, and per
 * equally long interval of steps those with the least and the greatest value of each metric in `names`. A spike of one step stays
 * visible. Memory is bounded by the number of chosen items.
 * @param lastStep approximate end of the range; later items belong to the last interval
 */
export async function choosePoints(
  metrics: AsyncIterable<JobMetric>,
  { names, maxPoints, from, lastStep }: PointOptions,
): Promise<JobMetric[]> {
  const count = Math.max(1, Math.floor((maxPoints - 2) / (2 * names.length)));
  const width = Math.max(1, (lastStep - from + 1) / count);
  const stretches = Array.from({ length: count }, () => new Interval(names));
  let all: Map<number, JobMetric> | null = new Map();
  let first: JobMetric | null = null;
  let last: JobMetric | null = null;
  for await (const metric of metrics) {
    // After a recovery a step is repeated; the newest counts.
    all?.set(metric.step, metric);
    if (all !== null && all.size > maxPoints) all = null;
    if (first === null || metric.step <= first.step) first = metric;
    if (last === null || metric.step >= last.step) last = metric;
    stretches[Math.min(count - 1, Math.floor((metric.step - from) / width))]?.add(metric);
  }
  const chosen = all?.values() ?? [first, ...stretches.flatMap((stretch) => stretch.extremes()), last];
  return newestOfEachStep([...chosen].filter((metric) => metric !== null));
}

export interface PointOptions {
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

function newestOfEachStep(metrics: readonly JobMetric[]): JobMetric[] {
  const newest = new Map<number, JobMetric>();
  for (const metric of metrics) {
    const known = newest.get(metric.step);
    if (known === undefined || known.seq < metric.seq) newest.set(metric.step, metric);
  }
  return [...newest.values()].sort((a, b) => a.step - b.step);
}
