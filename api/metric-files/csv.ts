import type { JobMetric } from '../../contracts/index.js';
import type { ReadMetrics } from '../../formats/metric-files/tensorboard.js';
import { valuesOf } from '../../formats/metric-files/values.js';

/** Columns of every table, before those of values. */
const FIXED = ['seq', 'position', 'at', 'step', 'epoch'] as const;

/**
 * A table after RFC 4180: a line of names, a line per item. The items are read twice, first for the names of the values
 * that some of them has. No field needs quotes: names and positions have neither commas nor quotes nor line breaks.
 */
export async function* csvLines(read: ReadMetrics): AsyncGenerator<string> {
  const names = new Set<string>();
  let count = 0;
  for await (const metric of read()) {
    count += 1;
    for (const [name] of valuesOf(metric)) names.add(name);
  }
  yield lineOf([...FIXED, ...names]);
  for await (const metric of read()) {
    // A training job writes more items meanwhile.
    if (count === 0) return;
    count -= 1;
    const values = new Map(valuesOf(metric));
    yield lineOf([
      ...FIXED.map((name) => metric[name]),
      ...[...names].map((name) => cellOf(values.get(name))),
    ]);
  }
}

/** The shortest text that reads as the same double. */
function cellOf(value: number | null | undefined): string {
  if (value === undefined) return '';
  return value === null ? 'NaN' : String(value);
}

function lineOf(cells: readonly JobMetric[(typeof FIXED)[number]][]): string {
  return `${cells.join(',')}\r\n`;
}
