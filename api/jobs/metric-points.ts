import type { JobMetric } from '../../contracts/index.js';
import { valuesOf } from '../../formats/metric-files/values.js';
import { type JobStreams, METRICS_PER_BLOCK, type MetricBlock, type StepRange } from '../../state/index.js';
import {
  BATCH_SIZE,
  isWhole,
  metricsOfParts,
  newestParts,
  type Part,
  type ReadMetrics,
} from './newest-metrics.js';

export interface PointOptions {
  /** Names of metrics of steps and of evaluations. */
  names: readonly string[];
  maxPoints: number;
  /** The range of steps. */
  steps: StepRange;
}

/**
 * Downsamples a job's metrics by step to at most `maxPoints`. Keeps all metrics if they are few enough. Otherwise keeps
 * the first, the last, and, per equally long interval of steps, those with the least and the greatest value of each
 * metric in `names`. A spike of one step stays visible. Of a repeated step only the newest metric counts; of equal
 * values the newest metric is chosen.
 *
 * The store keeps the extremes of blocks of metrics. Metrics are read only of blocks that later blocks repeat in part
 * and of blocks at the ends of the range. Where blocks are not shorter than an interval, the metrics of all blocks are
 * read. The cost is therefore that of `maxPoints`, of the number of blocks and of the number of recoveries. A block
 * belongs to the interval of its first step.
 */
export async function choosePoints(
  store: Pick<JobStreams, 'readBlocks' | 'readMetrics'>,
  jobId: string,
  { names, maxPoints, steps }: PointOptions,
): Promise<JobMetric[]> {
  const { stream, blocks } = await store.readBlocks(jobId, names);
  const read: ReadMetrics = (ranges) => store.readMetrics(jobId, stream, ranges);
  const parts = newestParts(blocks, steps);
  const numSteps = parts.reduce((sum, part) => sum + part.steps.to - part.steps.from + 1, 0);
  const numIntervals = Math.max(1, Math.floor((maxPoints - 2) / (2 * names.length)));
  const readsAll = numSteps <= Math.max(maxPoints, numIntervals * METRICS_PER_BLOCK);

  const range = { from: parts[0]?.steps.from ?? 0, to: parts.at(-1)?.steps.to ?? 0 };
  const choice = new Choice(names, numIntervals, range);
  const isRead = (part: Part) => readsAll || !isWhole(part);
  for (const part of parts) if (!isRead(part)) choice.addBlock(part.block);
  for await (const metric of metricsOfParts(read, parts.filter(isRead))) choice.add(metric);
  const seqs = choice.seqs(maxPoints);
  const chosen: JobMetric[] = [];
  for (let at = 0; at < seqs.length; at += BATCH_SIZE)
    chosen.push(...(await read(seqs.slice(at, at + BATCH_SIZE).map((seq) => ({ first: seq, last: seq })))));
  return chosen.sort((a, b) => a.step - b.step);
}

interface Chosen {
  seq: number;
  value: number;
}

/** The numbers of the chosen metrics. */
class Choice {
  private readonly width: number;
  private readonly least = new Map<string, Chosen>();
  private readonly greatest = new Map<string, Chosen>();
  private first: Chosen | null = null;
  private last: Chosen | null = null;
  private readonly added: number[] = [];
  private summarized = false;

  constructor(
    private readonly names: readonly string[],
    numIntervals: number,
    private readonly steps: StepRange,
  ) {
    this.width = (steps.to - steps.from + 1) / numIntervals;
  }

  /** Adds a block of which all metrics count. */
  addBlock({ first, last, steps, extremes }: MetricBlock): void {
    this.summarized = true;
    this.addEnd({ seq: first, value: steps.from });
    this.addEnd({ seq: last, value: steps.to });
    for (const [name, both] of extremes)
      for (const extreme of both) this.addValue(`${this.intervalOf(steps.from)} ${name}`, extreme);
  }

  add(metric: JobMetric): void {
    const { seq, step } = metric;
    this.added.push(seq);
    this.addEnd({ seq, value: step });
    for (const [name, value] of valuesOf(metric))
      if (value !== null && this.names.includes(name))
        this.addValue(`${this.intervalOf(step)} ${name}`, { seq, value });
  }

  /** Returns the numbers of at most `maxPoints` metrics. */
  seqs(maxPoints: number): number[] {
    if (!this.summarized && this.added.length <= maxPoints) return this.added;
    const chosen = [this.first, this.last, ...this.least.values(), ...this.greatest.values()];
    const seqs = chosen.filter((each) => each !== null).map(({ seq }) => seq);
    return [...new Set(seqs)].slice(0, maxPoints);
  }

  private intervalOf(step: number): number {
    return Math.floor((step - this.steps.from) / this.width);
  }

  private addEnd(end: Chosen): void {
    if (this.first === null || end.value < this.first.value) this.first = end;
    if (this.last === null || end.value > this.last.value) this.last = end;
  }

  private addValue(at: string, { seq, value }: Chosen): void {
    const [least, greatest] = [this.least.get(at), this.greatest.get(at)];
    const isNewer = (other: Chosen) => value === other.value && seq > other.seq;
    if (!least || value < least.value || isNewer(least)) this.least.set(at, { seq, value });
    if (!greatest || value > greatest.value || isNewer(greatest)) this.greatest.set(at, { seq, value });
  }
}
