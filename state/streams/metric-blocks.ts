import type { StoreContext } from '../core/context.js';

/** Steps from `from` to `to`, both included. */
export interface StepRange {
  from: number;
  to: number;
}

/** Numbers `seq` of metrics from `first` to `last`, both included. */
export interface SeqRange {
  first: number;
  last: number;
}

/** A value and the metric that has it. */
interface Extreme {
  value: number;
  seq: number;
}

/** A few metrics of successive steps, oldest first: one for each step of `steps`. A step back begins a block. */
export interface MetricBlock extends SeqRange {
  steps: StepRange;
  /** Bytes of the lines of its steps (formats/metric-files/step-lines.ts). */
  line_bytes: number;
  /**
   * The least and the greatest value of each name, except `seconds/…` and `trust_ratios/…`; of equal ones the newest.
   */
  extremes: ReadonlyMap<string, readonly [least: Extreme, greatest: Extreme]>;
  /** False for the oldest block when some of its metrics were dropped. */
  is_whole: boolean;
}

/** Greatest number of metrics of a block. A curve reads either the extremes of a block or all of its metrics. */
export const METRICS_PER_BLOCK = 32;
/** Blocks per read of the store. */
const BATCH_SIZE = 1000;

type Extremes = Record<string, [least: string, at_least: number, greatest: string, at_greatest: number]>;

/** Reads all blocks of a job's metrics (report.lua). */
export async function readBlocks(
  { commands }: StoreContext,
  jobId: string,
  names: readonly string[],
): Promise<{ stream: string; blocks: MetricBlock[] }> {
  const all: MetricBlock[] = [];
  for (;;) {
    const after = all.at(-1)?.first ?? 0;
    const reply = await commands.run('read_blocks', { job_id: jobId, after, limit: BATCH_SIZE });
    const [stream, oldest, blocks, extremes] = reply as [string, string, string[], string[]];
    all.push(...blocks.map((text, i) => blockOf(text, extremes[i] ?? '{}', Number(oldest), names)));
    if (blocks.length < BATCH_SIZE) return { stream, blocks: all };
  }
}

function blockOf(text: string, extremes: string, oldest: number, names: readonly string[]): MetricBlock {
  const [first = 0, from = 0, to = 0, last = 0, lineBytes = 0] = text.split(' ').map(Number);
  const known: Extremes = JSON.parse(extremes);
  const found = names.flatMap((name): [string, [Extreme, Extreme]][] => {
    const pair = known[name];
    if (pair === undefined) return [];
    const [least, atLeast, greatest, atGreatest] = pair;
    return [
      [
        name,
        [
          { value: Number(least), seq: atLeast },
          { value: Number(greatest), seq: atGreatest },
        ],
      ],
    ];
  });
  return {
    first,
    last,
    steps: { from, to },
    line_bytes: lineBytes,
    extremes: new Map(found),
    is_whole: first >= oldest,
  };
}
