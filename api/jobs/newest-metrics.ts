/** The newest metric of each step. */
import type { JobMetric } from '../../contracts/index.js';
import { METRICS_PER_BLOCK, type MetricBlock, type SeqRange, type StepRange } from '../../state/index.js';

/** Metrics per read of the store. */
export const BATCH_SIZE = 1000;

/** Steps of a block whose newest metrics are in the block. */
export interface Part {
  block: MetricBlock;
  steps: StepRange;
}

export type ReadMetrics = (ranges: readonly SeqRange[]) => Promise<JobMetric[]>;

/** True if the newest metrics of all steps of the block are in the block. */
export function isWhole({ block, steps }: Part): boolean {
  return block.is_whole && steps.from === block.steps.from && steps.to === block.steps.to;
}

/**
 * Divides the steps of a range by the blocks that have their newest metrics. @returns parts in the order of their steps
 */
export function newestParts(blocks: readonly MetricBlock[], { from, to }: StepRange): Part[] {
  let later: StepRange[] = [];
  const parts: Part[] = [];
  for (const block of blocks.toReversed()) {
    const steps = { from: Math.max(from, block.steps.from), to: Math.min(to, block.steps.to) };
    if (steps.from > steps.to) continue;
    parts.push(...without(later, steps).map((range) => ({ block, steps: range })));
    later = merged(later, steps);
  }
  return parts.sort((a, b) => a.steps.from - b.steps.from);
}

/** Yields the metrics of parts, in the order of the parts. */
export async function* metricsOfParts(read: ReadMetrics, parts: readonly Part[]): AsyncGenerator<JobMetric> {
  const size = Math.floor(BATCH_SIZE / METRICS_PER_BLOCK);
  for (let at = 0; at < parts.length; at += size) {
    const batch = parts.slice(at, at + size);
    const metrics = await read([...new Set(batch.map(({ block }) => block))]);
    for (const { block, steps } of batch)
      yield* metrics.filter(
        ({ seq, step }) => seq >= block.first && seq <= block.last && step >= steps.from && step <= steps.to,
      );
  }
}

/** Returns the ranges of the steps that are in none of the ranges, which are disjoint and ascending. */
function without(ranges: readonly StepRange[], { from, to }: StepRange): StepRange[] {
  const left: StepRange[] = [];
  let next = from;
  for (const range of ranges) {
    if (range.to < next || range.from > to) continue;
    if (range.from > next) left.push({ from: next, to: range.from - 1 });
    next = range.to + 1;
  }
  return next <= to ? [...left, { from: next, to }] : left;
}

/** Adds a range to disjoint ascending ranges: one range, unless steps are missing. */
function merged(ranges: readonly StepRange[], { from, to }: StepRange): StepRange[] {
  const before = ranges.filter((range) => range.to < from - 1);
  const behind = ranges.filter((range) => range.from > to + 1);
  const touching = ranges.slice(before.length, ranges.length - behind.length);
  const whole = {
    from: Math.min(from, ...touching.map((range) => range.from)),
    to: Math.max(to, ...touching.map((range) => range.to)),
  };
  return [...before, whole, ...behind];
}
