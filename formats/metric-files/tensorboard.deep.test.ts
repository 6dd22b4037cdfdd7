/** TensorBoard's own readers show an event file's newest value of each step. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import type { JobMetric } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { testPython } from '../../platform/testing/python.js';
import { eventFileName, eventRecords, type MeasuredJob } from './tensorboard.js';
import { valuesOf } from './values.js';

const folder = join(projectRoot(), 'formats', 'metric-files', 'golden');
const { program, missing } = testPython('tensorboard', 'numpy');

/** Points of a tag: step, seconds since 1970, and the value as text, which may be NaN. */
type Point = [step: number, seconds: number, value: string];

function shownOf(metrics: readonly JobMetric[]): Record<string, Point[]> {
  const shown = new Map<string, Point[]>();
  let last = 0;
  for (const metric of metrics) {
    const { step, at } = metric;
    if (step <= last)
      for (const [tag, points] of shown)
        shown.set(
          tag,
          points.filter(([known]) => known < step),
        );
    last = step;
    for (const [tag, value] of valuesOf(metric)) {
      const point: Point = [step, Date.parse(at) / 1000, String(Math.fround(value ?? Number.NaN))];
      shown.set(tag, [...(shown.get(tag) ?? []), point]);
    }
  }
  return Object.fromEntries(shown);
}

t.test('TensorBoard shows the metrics', { skip: missing ?? false, timeout: 300_000 }, async (t) => {
  const { job, metrics }: { job: MeasuredJob; metrics: JobMetric[] } = JSON.parse(
    readFileSync(join(folder, 'metrics.json'), 'utf8'),
  );
  const many = Array.from({ length: 300 }, (_, i): JobMetric => {
    const step = i < 250 ? i + 1 : i - 100;
    return { ...(metrics[0] as JobMetric), step, loss: 5 / (i + 1), seq: i + 3 };
  });
  for (const items of [metrics, many]) {
    const run = t.testdir();
    const pieces: Uint8Array[] = [];
    const read = async function* () {
      yield* items;
    };
    for await (const piece of eventRecords(read, job)) pieces.push(piece);
    await writeFile(join(run, eventFileName(job)), Buffer.concat(pieces));
    const { stdout, stderr } = spawnSync(program, [join(folder, 'read_events.py'), run], {
      encoding: 'utf8',
    });
    t.not(stdout, '', stderr);
    const readers = JSON.parse(stdout) as Record<string, Point[]>[];
    t.equal(readers.length, 2);
    const expected = shownOf(items);
    for (const reader of readers)
      t.same(
        Object.fromEntries(
          Object.entries(reader).map(([tag, points]) => [
            tag,
            points.map(([step, seconds, value]) => [step, seconds, String(Number(value))]),
          ]),
        ),
        expected,
      );
  }
});
