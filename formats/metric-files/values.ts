import { metricOf } from '../../contracts/evaluation-metrics.js';
import type { JobMetric } from '../../contracts/index.js';

/** Fields with one value. */
const SCALARS = [
  'loss',
  'aux_loss',
  'grad_norm',
  'lr',
  'loss_scale',
  'skipped_steps',
  'tokens',
  'tokens_per_second',
  'world_size',
  'memory_bytes',
] as const;

/** A value with its name, such as `loss` or `preference/margin`; null for one that is not finite. */
export type NamedValue = readonly [name: string, value: number | null];

/** Returns the values that an item has, by the names that the contract documents. */
export function valuesOf(
  metric: Omit<JobMetric, 'seq' | 'position' | 'kind' | 'epoch' | 'at'>,
): NamedValue[] {
  const values: NamedValue[] = [];
  const add = (prefix: string, group: Readonly<Record<string, number | null>> = {}) => {
    for (const name in group) values.push([prefix + name, group[name] ?? null]);
  };
  for (const name of SCALARS) {
    const value = metric[name];
    if (value !== undefined) values.push([name, value]);
  }
  // Steps of no other objective have these metrics.
  const aim = metric.reinforcement === undefined ? {} : { objective: { type: 'grpo' } };
  add('preference/', metric.preference);
  add('reinforcement/', metric.reinforcement);
  add('seconds/', metric.seconds);
  for (const [name, byRank] of Object.entries(metric.system ?? {}))
    byRank.forEach((value, rank) => {
      values.push([`system/${name}/${rank}`, value]);
    });
  metric.trust_ratios?.forEach((ratios, group) => {
    add(`trust_ratios/${group}/`, ratios);
  });
  for (const [name, loss] of Object.entries(metric.eval_losses ?? {}))
    values.push([metricOf(name, aim), loss]);
  return values;
}
