import fc from 'fast-check';
import t from 'tap';
import type { JobMetric } from '../../contracts/index.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { METRICS_PER_BLOCK, type MetricInput, metricsBetween } from '../../state/index.js';
import { executionAt } from '../../state/testing/executions.js';
import { createTestJob } from '../../state/testing/jobs.js';
import { runningJob } from '../../state/testing/streams.js';
import { metricOf } from '../testing/training.js';
import { choosePoints, type PointOptions } from './metric-points.js';

const server = await startTestRedis();
t.teardown(() => server.stop());
const { store } = await runningJob(t, server);

const ALL = { from: 1, to: Number.POSITIVE_INFINITY };
/** Metrics per report. */
const REPORTED = 37;

const NAMES = [
  'loss',
  'grad_norm',
  'tokens_per_second',
  'memory_bytes',
  'eval_loss/code',
  'preference/margin',
];
const EVALUATED = 'code';
const MEANS = {
  reward_chosen: 1,
  reward_rejected: 1,
  accuracy: 1,
  log_prob_chosen: 1,
  log_prob_rejected: 1,
};

/** Creates a job with these metrics. */
async function jobWith(metrics: readonly MetricInput[]): Promise<string> {
  const { id } = await createTestJob(store);
  await store.claimAttempt(id, 1, 'a', 60_000);
  for (let at = 0; at < metrics.length; at += REPORTED)
    await store.report(id, executionAt(id, 1), metrics.slice(at, at + REPORTED), null);
  return id;
}

async function stored(id: string): Promise<JobMetric[]> {
  const all: JobMetric[] = [];
  for await (const metric of metricsBetween(store, id, ALL)) all.push(metric);
  return all;
}

/** Chooses points, and counts the metrics that are read. */
async function counted(id: string, options: PointOptions): Promise<{ chosen: JobMetric[]; read: number }> {
  let read = 0;
  const readMetrics: typeof store.readMetrics = async (...args) => {
    const metrics = await store.readMetrics(...args);
    read += metrics.length;
    return metrics;
  };
  const chosen = await choosePoints({ readBlocks: store.readBlocks, readMetrics }, id, options);
  return { chosen, read };
}

const finite = fc.option(fc.double({ min: -5, max: 5, noNaN: true }), { freq: 8 });

/** Steps that sometimes resume from a checkpoint, as after recoveries. */
const series = fc
  .array(
    fc.record({
      back: fc.nat({ max: 12 }),
      loss: finite,
      grad_norm: finite,
      margin: finite,
      memory_bytes: fc.nat(),
    }),
    { minLength: 1, maxLength: 400 },
  )
  .map((entries) => {
    let step = 0;
    return entries.map(({ back, margin, ...measured }): MetricInput => {
      step = back === 12 ? Math.max(1, step - 5) : step + 1;
      const evalLosses = step % 3 === 0 && { eval_losses: { validation: 1, [EVALUATED]: measured.loss } };
      return { ...metricOf(step), ...measured, preference: { ...MEANS, margin }, ...evalLosses };
    });
  });

function compareExtremes(metrics: readonly JobMetric[], chosen: readonly JobMetric[], name: string): void {
  const measured = (point: JobMetric) => {
    if (name === 'preference/margin') return point.preference?.margin;
    return name === 'eval_loss/code' ? point.eval_losses?.[EVALUATED] : point[name as 'loss'];
  };
  const values = (metrics: readonly JobMetric[]) => metrics.map(measured).filter((value) => value != null);
  const [all, kept] = [values(metrics), values(chosen)];
  if (all.length === 0) return;
  if (Math.max(...all) !== Math.max(...kept) || Math.min(...all) !== Math.min(...kept))
    throw new Error(`an extreme value of ${name} is lost`);
}

t.test(
  'all points are measured ones, include the extremes and both ends, and respect the limit',
  async (t) => {
    await fc.assert(
      fc.asyncProperty(
        series,
        fc.integer({ min: 16, max: 60 }),
        fc.subarray(NAMES, { minLength: 1 }),
        fc.option(
          fc.record({ from: fc.integer({ min: 1, max: 100 }), length: fc.integer({ min: 1, max: 300 }) }),
        ),
        async (inputs, maxPoints, names, part) => {
          const id = await jobWith(inputs);
          const steps = part === null ? ALL : { from: part.from, to: part.from + part.length };
          const metrics = (await stored(id)).filter(({ step }) => step >= steps.from && step <= steps.to);
          const chosen = await choosePoints(store, id, { names, maxPoints, steps });
          if (chosen.length > maxPoints) throw new Error(`${chosen.length} points`);
          const newest = [...new Map(metrics.map((metric) => [metric.step, metric])).values()];
          const texts = new Set(newest.map((metric) => JSON.stringify(metric)));
          if (!chosen.every((point) => texts.has(JSON.stringify(point))))
            throw new Error('a point that was not measured, or was repeated');
          const found = chosen.map(({ step }) => step);
          if (found.some((step, i) => i > 0 && step <= (found[i - 1] ?? 0))) throw new Error('not in order');
          const all = newest.map(({ step }) => step).sort((a, b) => a - b);
          if (found.at(-1) !== all.at(-1) || found[0] !== all[0]) throw new Error('an end is missing');
          if (newest.length <= maxPoints && chosen.length !== newest.length)
            throw new Error('fewer than allowed');
          for (const name of names) compareExtremes(newest, chosen, name);
        },
      ),
      { numRuns: 100 },
    );
    t.pass('hold');
  },
);

t.test('a spike of one step in many is kept, and few metrics are read', async (t) => {
  const spike = (step: number) => ({ ...metricOf(step), loss: step === 1235 ? 99 : 1 });
  const steps = Array.from({ length: 4000 }, (_, i) => i + 1);
  // Two recoveries: the steps from 1,001 on, and the last 60, ran twice.
  const id = await jobWith([...steps.slice(0, 1100), ...steps.slice(1000), ...steps.slice(3940)].map(spike));
  const options = { names: ['loss'], maxPoints: 16, steps: ALL };
  const { chosen, read } = await counted(id, options);
  t.ok(chosen.length <= 16);
  t.ok(read <= 16 + 3 * METRICS_PER_BLOCK, `${read} of ${(await stored(id)).length} were read`);
  t.strictSame(
    chosen.filter(({ loss }) => loss === 99).map(({ step }) => step),
    [1235],
  );
  t.strictSame((await counted(id, options)).chosen, chosen, 'the same points each time');
});

t.test('dropped metrics are in no curve, and their blocks go with them', async (t) => {
  const { id } = await createTestJob(store);
  await store.claimAttempt(id, 1, 'a', 60_000);
  await t.resolves(choosePoints(store, id, { names: ['loss'], maxPoints: 16, steps: ALL }), 'no metrics');
  const redis = await connectRedis(server.url, 'commands');
  t.teardown(() => disconnectRedis(redis));
  const other = await jobWith(Array.from({ length: 700 }, (_, i) => metricOf(i + 1)));
  const [metrics = ''] = await redis.keys(`*job:${other}:metrics`);
  await redis.xtrim(metrics, 'MAXLEN', 150);
  await store.report(other, executionAt(other, 1), [metricOf(701)], null);
  const { blocks } = await store.readBlocks(other, []);
  t.ok(blocks.length <= Math.ceil(151 / METRICS_PER_BLOCK) + 1);
  t.strictSame(
    blocks.map(({ is_whole }) => is_whole),
    blocks.map((_, i) => i > 0),
  );
  const chosen = await choosePoints(store, other, { names: ['loss'], maxPoints: 500, steps: ALL });
  t.strictSame(chosen, await stored(other));
});
