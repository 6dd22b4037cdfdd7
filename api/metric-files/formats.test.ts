/** Files of metrics: TensorBoard's own event file (golden/make_golden.py), CSV by Python's csv, and exact values. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { JobMetric } from '../../contracts/index.js';
import type { MeasuredJob } from '../../formats/metric-files/tensorboard.js';
import { valuesOf } from '../../formats/metric-files/values.js';
import { projectRoot } from '../../platform/process/root.js';
import { testPython } from '../../platform/testing/python.js';
import { METRIC_FORMATS } from './formats.js';

const golden = (name: string) => join(projectRoot(), 'formats', 'metric-files', 'golden', name);
const { job, metrics }: { job: MeasuredJob; metrics: JobMetric[] } = JSON.parse(
  readFileSync(golden('metrics.json'), 'utf8'),
);

async function* itemsOf(items: readonly JobMetric[]): AsyncGenerator<JobMetric> {
  yield* items;
}

async function fileOf(format: keyof typeof METRIC_FORMATS, read = () => itemsOf(metrics)): Promise<Buffer> {
  const pieces = [];
  for await (const piece of METRIC_FORMATS[format].encode(read, job)) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
}

t.test('the event file is the one that TensorBoard writes', async (t) => {
  t.equal(
    (await fileOf('tensorboard')).toString('hex'),
    readFileSync(golden('events.out.tfevents.golden')).toString('hex'),
  );
  t.equal(METRIC_FORMATS.tensorboard.nameOf(job), `events.out.tfevents.1795251600.${job.id}`);
});

t.test('lines of JSON are the items', async (t) => {
  const lines = (await fileOf('jsonl')).toString().split('\n');
  t.equal(lines.pop(), '', 'each line has an end');
  t.strictSame(
    lines.map((line) => JSON.parse(line)),
    metrics,
  );
});

/** Rows as objects of doubles, null for NaN, without the values that an item lacks. */
const expectedRows = metrics.map((metric) => ({
  seq: metric.seq,
  position: metric.position,
  at: metric.at,
  step: metric.step,
  epoch: metric.epoch,
  ...Object.fromEntries(valuesOf(metric)),
}));

t.test('a table has every value exactly', async (t) => {
  const lines = (await fileOf('csv')).toString().split('\r\n');
  t.equal(lines.pop(), '', 'each line has an end');
  const [head = [], ...rows] = lines.map((line) => line.split(','));
  t.equal(new Set(head).size, head.length);
  t.match(
    head.join(),
    /^seq,position,at,step,epoch,loss,grad_norm,.*,preference\/margin,.*,eval_loss,eval_loss\/code$/,
  );
  const readCell = (text: string, name = '') => {
    if (name === 'position' || name === 'at') return text;
    return text === 'NaN' ? null : Number(text);
  };
  const read = rows.map((cells) => {
    t.equal(cells.length, head.length);
    return Object.fromEntries(
      cells.flatMap((text, i) => (text === '' ? [] : [[head[i], readCell(text, head[i])]])),
    );
  });
  t.same(read, expectedRows);
});

t.test('Python reads the same table', async (t) => {
  const { program, missing } = testPython('csv');
  if (missing !== null) return t.comment(missing);
  const code = `
import csv, json, sys
text = ("position", "at")
rows = csv.DictReader(open(0, newline=""), strict=True)
print(json.dumps([{n: v if n in text else None if v == "NaN" else float(v) for n, v in row.items() if v != ""} for row in rows]))`;
  const { stdout, stderr } = spawnSync(program, ['-c', code], {
    input: await fileOf('csv'),
    encoding: 'utf8',
  });
  t.equal(stderr, '');
  t.same(JSON.parse(stdout), expectedRows);
});

t.test('a table of a job that goes on has the items of one moment', async (t) => {
  const [first, second] = metrics as [JobMetric, JobMetric];
  const reads = [[first], [first, second]];
  const file = await fileOf('csv', () => itemsOf(reads.shift() ?? []));
  t.strictSame(file.toString(), (await fileOf('csv', () => itemsOf([first]))).toString());
});

t.test('files without items', async (t) => {
  const none = () => itemsOf([]);
  t.equal((await fileOf('jsonl', none)).length, 0);
  t.equal((await fileOf('csv', none)).toString(), 'seq,position,at,step,epoch\r\n');
  const whole = readFileSync(golden('events.out.tfevents.golden'));
  const head = await fileOf('tensorboard', none);
  t.ok(head.length > 0 && whole.subarray(0, head.length).equals(head));
});
