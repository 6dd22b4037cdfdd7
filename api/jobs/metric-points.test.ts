import fc from 'fast-check';
import t from 'tap';
import type { JobMetric } from '../../contracts/index.js';
import { metricOf } from '../testing/training.js';
import { choosePoints } from './metric-points.js';

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

const from = (metrics: readonly JobMetric[]) =>
  async function* () {
    yield* metrics;
  };

const finite = fc.option(fc.double({ min: -5, max: 5, noNaN: true }), { freq: 8 });

function entryOf(step: number, seq: number): JobMetric {
  return {
    ...metricOf(step),
    seq,
    position: `3fa91c0b-${seq}-660da8a518800`,
    kind: 'metric',
    at: '',
    epoch: 1,
  };
}

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
    return entries.map(({ back, margin, ...measured }, i): JobMetric => {
      step = back === 12 ? Math.max(1, step - 5) : step + 1;
      const eval_losses = step % 3 === 0 && { eval_losses: { validation: 1, [EVALUATED]: measured.loss } };
      return { ...entryOf(step, i + 1), ...measured, preference: { ...MEANS, margin }, ...eval_losses };
    });
  });

function compareExtremes(metrics: readonly JobMetric[], chosen: readonly JobMetric[], name: string): void {
  const measured = (point: JobMetric) => {
    if (name === 'preference/margin') return point.preference?.margin;
    return name === 'eval_loss/code' ? point.eval_losses?.[EVALUATED] : point[name as 'loss'];
  };
  const values = (of: readonly JobMetric[]) => of.map(measured).filter((value) => value != null);
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
        async (metrics, maxPoints, names) => {
          const lastStep = Math.max(...metrics.map(({ step }) => step));
          const chosen = await choosePoints(from(metrics), { names, maxPoints, from: 1, lastStep });
          if (chosen.length > maxPoints) throw new Error(`${chosen.length} points`);
          const newest = [...new Map(metrics.map((metric) => [metric.step, metric])).values()];
          if (!chosen.every((point) => newest.includes(point)))
            throw new Error('a point that was not measured, or was repeated');
          const steps = chosen.map(({ step }) => step);
          if (steps.some((step, i) => i > 0 && step <= (steps[i - 1] ?? 0))) throw new Error('not in order');
          if (steps.at(-1) !== lastStep || steps[0] !== Math.min(...metrics.map(({ step }) => step)))
            throw new Error('an end is missing');
          if (newest.length <= maxPoints && chosen.length !== newest.length)
            throw new Error('fewer than allowed');
          for (const name of names) compareExtremes(newest, chosen, name);
        },
      ),
      { numRuns: 300 },
    );
    t.pass('hold');
  },
);

t.test('a spike of one step in many is kept', async (t) => {
  const metrics = Array.from({ length: 50_000 }, (_, i): JobMetric => {
    return { ...entryOf(i + 1, i + 1), loss: i === 31_234 ? 99 : 1 };
  });
  const chosen = await choosePoints(from(metrics), {
    names: ['loss'],
    maxPoints: 100,
    from: 1,
    lastStep: 50_000,
  });
  t.ok(chosen.length <= 100);
  t.strictSame(
    chosen.filter(({ loss }) => loss === 99).map(({ step }) => step),
    [31_235],
  );
});
