/**
 * Curves of a run: values by step, of which old ones are thinned out, so that a page holds the same memory for any
 * length.
 */
import { metricOf, VALIDATION } from '../../../../contracts/evaluation-metrics.js';
import type { JobMetric, ResolvedJobSpec } from '../../../../contracts/types.js';
import { AXES, type AxisName, type Placed } from '../../parts/chart-axes.js';

/** Points that are held; half of the inner ones are dropped beyond. */
export const MAX_POINTS = 4_000;
/** Metrics that a request for points may name. */
const MAX_NAMES = 8;

/** Values of a step that charts draw, by name. */
const VALUES = {
  loss: ({ loss }: JobMetric) => loss,
  aux_loss: ({ aux_loss }: JobMetric) => aux_loss ?? null,
  lr: ({ lr }: JobMetric) => lr,
  grad_norm: ({ grad_norm }: JobMetric) => grad_norm,
  tokens_per_second: ({ tokens_per_second }: JobMetric) => tokens_per_second,
  ranks: ({ world_size }: JobMetric) => world_size,
  memory: ({ memory_bytes }: JobMetric) => memory_bytes,
  loss_scale: ({ loss_scale }: JobMetric) => loss_scale ?? null,
  skipped_steps: ({ skipped_steps }: JobMetric) => skipped_steps ?? null,
} as const;

export interface CurvePoint extends Placed {
  values: Readonly<Record<string, number | null>>;
}

/** The value that reinforcement learning raises. */
export const REWARD = 'samples/reward';

/** Beginning of the names of curves with the mean rewards of evaluations. */
export const EVAL_REWARD = 'eval reward ';

/** Returns the name of the curve of an evaluation. */
export const evaluationCurve = (name: string, isRewarded: boolean): string =>
  `${isRewarded ? EVAL_REWARD : 'eval '}${name}`;

/** Parts of the time of a step, in seconds. */
export const PHASES = ['data', 'forward', 'backward', 'exchange', 'optimizer', 'gather'] as const;

export function pointOf(metric: JobMetric): CurvePoint {
  const values: Record<string, number | null> = {};
  for (const [name, valueIn] of Object.entries(VALUES)) values[name] = valueIn(metric);
  const isRewarded = metric.reinforcement !== undefined;
  for (const [name, figure] of Object.entries(metric.eval_losses ?? {}))
    values[evaluationCurve(name, isRewarded)] = figure;
  for (const [name, mean] of Object.entries(metric.preference ?? {})) values[name] = mean;
  for (const [name, mean] of Object.entries(metric.reinforcement ?? {})) values[`samples/${name}`] = mean;
  for (const [name, byRank] of Object.entries(metric.system ?? {}))
    for (const [rank, value] of byRank.entries()) values[`${name} of rank ${rank}`] = value;
  for (const phase of PHASES) values[phase] = metric.seconds[phase];
  const { step, tokens, at } = metric;
  return { step, tokens, at: Date.parse(at), values };
}

/** Returns the metrics whose extremes a run's first points should have: those that jump, and its evaluations. */
export function extremesOf({ data, train }: Pick<ResolvedJobSpec, 'data' | 'train'>): string[] {
  const aims = extremesOfObjective(train.objective?.type);
  const validation = data.validation_fraction > 0 ? [metricOf(VALIDATION, train)] : [];
  const datasets = (train.evaluation?.datasets ?? []).map(({ name }) => metricOf(name, train));
  const always = ['loss', 'grad_norm', 'tokens_per_second', 'memory_bytes', 'system/cpu/0'];
  return [...always, ...validation, ...aims, ...datasets].slice(0, MAX_NAMES);
}

function extremesOfObjective(type: string | undefined): string[] {
  if (type === undefined) return [];
  return type === 'grpo'
    ? ['reinforcement/reward', 'reinforcement/entropy']
    : ['preference/margin', 'preference/accuracy'];
}

/**
 * Adds points of later steps; a step that is there is replaced, and what came after it goes: the run went back to a
 * checkpoint.
 * @returns a new list, of at most MAX_POINTS and one more
 */
export function extended(points: readonly CurvePoint[], added: readonly CurvePoint[]): CurvePoint[] {
  const [first] = added;
  if (first === undefined) return [...points];
  const kept = points.filter(({ step }) => step < first.step);
  return thinned([...kept, ...added]);
}

/**
 * Drops every second inner point if there are too many. Points of evaluations and of measurements stay, unless they
 * alone are too many.
 */
export function thinned(points: readonly CurvePoint[]): CurvePoint[] {
  if (points.length <= MAX_POINTS) return [...points];
  const last = points.length - 1;
  const isRare = ({ values }: CurvePoint) =>
    Object.keys(values).some((name) => name.startsWith('eval ') || name.startsWith('cpu '));
  const kept = points.filter((point, index) => index % 2 === 0 || index === last || isRare(point));
  return kept.length <= MAX_POINTS ? kept : points.filter((_, index) => index % 2 === 0 || index === last);
}

/** Names of the values that some point has, in the order in which they appear. */
export function namesIn(points: readonly Pick<CurvePoint, 'values'>[]): string[] {
  const names = new Set<string>();
  for (const { values } of points)
    for (const [name, value] of Object.entries(values)) if (value !== null) names.add(name);
  return [...names];
}

/**
 * Exponential moving average, without the bias of its beginning; gaps stay.
 * @param weight of the past, from 0 (none) to below 1
 */
export function smoothed(values: readonly (number | null)[], weight: number): (number | null)[] {
  if (weight <= 0) return [...values];
  let sum = 0;
  let norm = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    norm = weight * norm + (1 - weight);
    return sum / norm;
  });
}

/** Columns of a chart: positions on its axis, then the values of each name; null where a point has none. */
export function columnsOf(
  points: readonly CurvePoint[],
  names: readonly string[],
  { smoothing = 0, logarithmic = false, axis = 'step' as AxisName } = {},
): [number[], ...(number | null)[][]] {
  const columns = names.map((name) => {
    const values = smoothed(
      points.map(({ values: measured }) => measured[name] ?? null),
      name.startsWith('eval ') ? 0 : smoothing,
    );
    // A logarithmic axis has no position for others.
    return logarithmic ? values.map((value) => (value !== null && value > 0 ? value : null)) : values;
  });
  return [AXES[axis].positions(points), ...columns];
}
