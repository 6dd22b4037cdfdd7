/** Evaluations of a job: their names, data and metrics. */
import type { ResolvedJobSpec } from '../contracts/types.js';
import { type DataSection, trainingSectionsOf } from './mixture.js';

type Data = ResolvedJobSpec['data'];

/** The sections of a document that define its evaluations. */
export interface EvaluatedSpec {
  data: Pick<Data, 'validation_fraction'>;
  train: Pick<ResolvedJobSpec['train'], 'evaluation'>;
}

/** Figures of an evaluation by name, losses or rewards; null for one that is not finite. */
type Figures = Readonly<Record<string, number | null>>;

/** Name of the evaluation on the part of the training data that is set aside. */
export const VALIDATION = 'validation';

const LOSS = 'eval_loss';
/** Mean reward of answers; higher is better. */
const REWARD = 'eval_reward';
const METRIC = new RegExp(`^(?:${LOSS}|${REWARD})(?:/(.+))?$`);

/** Returns the names of a job's evaluations, in their order. */
export function evaluationsOf({ data, train }: EvaluatedSpec): string[] {
  const named = train.evaluation?.datasets ?? [];
  return [...(data.validation_fraction > 0 ? [VALIDATION] : []), ...named.map(({ name }) => name)];
}

/** Returns whether an evaluation follows a step: it depends on the step alone, whatever interrupts the job. */
export function isEvaluated(
  { evaluation, steps }: Pick<ResolvedJobSpec['train'], 'evaluation' | 'steps'>,
  step: number,
): boolean {
  return evaluation !== undefined && (step % evaluation.every_steps === 0 || step === steps);
}

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

/** Returns by how much the first figure is better; negative if the second one is. Losses fall, rewards rise. */
export function gainOf(metric: string, figure: number, other: number): number {
  return metric.startsWith(REWARD) ? figure - other : other - figure;
}

/** Returns the data section for each dataset of `train.evaluation`, which is evaluated on as a whole. */
export function evaluationSectionsOf({
  data,
  train,
}: Pick<ResolvedJobSpec, 'data' | 'train'>): DataSection[] {
  const named = train.evaluation?.datasets ?? [];
  const { mixture: _, ...shared } = data;
  return named.map(({ dataset }) => ({ ...shared, dataset, validation_fraction: 0 }));
}

/** Returns the datasets that a job needs until it has ended. */
export function datasetsOf(spec: ResolvedJobSpec): string[] {
  const sections = [...trainingSectionsOf(spec.data), ...evaluationSectionsOf(spec)];
  return [...new Set(sections.map(({ dataset }) => dataset))];
}
