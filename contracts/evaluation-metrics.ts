/** Metrics of evaluations, and which of two figures is better. */

/** Figures of an evaluation by name, losses or rewards; null for one that is not finite. */
type Figures = Readonly<Record<string, number | null>>;

/** Name of the evaluation on the part of the training data that is set aside. */
export const VALIDATION = 'validation';

const LOSS = 'eval_loss';
/** Mean reward of answers; higher is better. */
const REWARD = 'eval_reward';
const METRIC = new RegExp(`^(?:${LOSS}|${REWARD})(?:/(.+))?$`);

/** Returns the metric of an evaluation. */
export function metricOf(name: string, { objective }: { objective?: { type: string } | undefined }): string {
  const metric = objective?.type === 'grpo' ? REWARD : LOSS;
  return name === VALIDATION ? metric : `${metric}/${name}`;
}

/** Returns the name of the evaluation that a metric is of; null for other metrics. */
export function evaluationOf(metric: string): string | null {
  const [whole, name = VALIDATION] = METRIC.exec(metric) ?? [];
  return whole === undefined || metric.endsWith(`/${VALIDATION}`) ? null : name;
}

/** Returns the value of a metric of evaluations; undefined without such an evaluation, and for other metrics. */
export function figureOf(figures: Figures | undefined, metric: string): number | null | undefined {
  return figures?.[evaluationOf(metric) ?? ''];
}

/** Whether figures of the metric are rewards. */
export const isReward = (metric: string): boolean => metric.startsWith(REWARD);

/** Returns by how much the first figure is better; negative if the second one is. Losses fall, rewards rise. */
export function gainOf(metric: string, figure: number, other: number): number {
  return isReward(metric) ? figure - other : other - figure;
}

/** Orders figures, the best first; null and undefined are last. */
export function compareFigures(
  metric: string,
  a: number | null | undefined,
  b: number | null | undefined,
): number {
  if (typeof a === 'number' && typeof b === 'number') return gainOf(metric, b, a);
  return Number(typeof b === 'number') - Number(typeof a === 'number');
}
