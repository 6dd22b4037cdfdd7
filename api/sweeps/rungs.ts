/** Where the runs of a sweep are compared, and by which metric. */

import { metricOf } from '../../contracts/evaluation-metrics.js';
import type { FieldError, ResolvedJobSpec, SweepPlan, SweepSpec } from '../../contracts/index.js';
import { evaluationsOf } from '../../job-document/index.js';

type Rungs = SweepPlan['rungs'];

export interface Comparison {
  metric: string;
  rungs: Rungs;
}

/** @param specs the resolved documents of the runs, at least one */
export function comparisonOf(
  sweep: SweepSpec,
  specs: readonly ResolvedJobSpec[],
): Comparison | { errors: FieldError[] } {
  const [first] = specs;
  if (first === undefined) return { errors: [] };
  const metric = sweep.metric ?? first.train.early_stopping?.metric ?? firstMetric(first);
  if (metric === undefined || !specs.every((spec) => metricsOf(spec).includes(metric)))
    return { errors: [withoutEvaluation(sweep)] };
  if (sweep.method !== 'successive_halving') return { metric, rungs: [{ step: null, runs: specs.length }] };
  const { steps } = first.train;
  if (steps === undefined) {
    const message = 'successive_halving compares runs at steps: set train.steps in place of train.epochs';
    return { errors: [{ pointer: '/spec/train/steps', code: 'sweep_rungs_missing', message }] };
  }
  const every = everySteps(first);
  const differs = (['steps', 'every_steps'] as const).filter((field) =>
    specs.some((spec) => (field === 'steps' ? spec.train.steps !== steps : everySteps(spec) !== every)),
  );
  if (differs.length > 0) return { errors: differs.map(differing) };
  const rungs = halvings(sweep, { steps, every, runs: specs.length });
  return rungs.length > 1 ? { metric, rungs } : { errors: [withoutRungs(steps, every)] };
}

const metricsOf = (spec: ResolvedJobSpec) => evaluationsOf(spec).map((name) => metricOf(name, spec.train));
const firstMetric = (spec: ResolvedJobSpec) => metricsOf(spec)[0];
const everySteps = ({ train, ...spec }: ResolvedJobSpec) =>
  evaluationsOf({ ...spec, train }).length === 0 ? 0 : (train.evaluation?.every_steps ?? 0);

/** Steps grow by the factor, and the number of runs shrinks by it. */
function halvings(
  { min_steps, factor = 3 }: SweepSpec,
  { steps, every, runs }: { steps: number; every: number; runs: number },
): Rungs {
  const rungs: Rungs = [];
  let left = runs;
  for (let at = min_steps ?? Math.ceil(steps / factor ** 2); every > 0 && left > 1; at *= factor) {
    const step = Math.ceil(at / every) * every;
    if (step >= steps) break;
    if (step > (rungs.at(-1)?.step ?? 0)) {
      rungs.push({ step, runs: left });
      left = Math.max(1, Math.floor(left / factor));
    }
  }
  return [...rungs, { step: null, runs: left }];
}

function withoutEvaluation({ metric }: SweepSpec): FieldError {
  const code = 'evaluation_missing';
  if (metric !== undefined)
    return { pointer: '/metric', code, message: `metric: not every run has the evaluation ${metric}` };
  const message = 'a sweep compares runs by their evaluation: set data.validation_fraction, such as 0.05';
  return { pointer: '/spec/data/validation_fraction', code, message, suggestion: '0.05' };
}

function withoutRungs(steps: number, every: number): FieldError {
  const message = `no rung is left: there is no evaluation between min_steps and the ${steps} steps of at least two runs; set train.evaluation.every_steps (now ${every}) to less`;
  return { pointer: '/spec/train/evaluation/every_steps', code: 'sweep_rungs_missing', message };
}

function differing(field: 'steps' | 'every_steps'): FieldError {
  const path = field === 'steps' ? 'train.steps' : 'train.evaluation.every_steps';
  const message = `${path} must be the same in all runs: successive_halving compares them at equal steps`;
  return { pointer: `/spec/${path.replaceAll('.', '/')}`, code: 'sweep_comparison_differs', message };
}
