/** Evaluations of a job: their names, data and metrics. */
import type { ResolvedJobSpec } from '../contracts/types.js';
import { type DataSection, trainingSectionsOf } from './mixture.js';

type Data = ResolvedJobSpec['data'];

/** The sections of a document that define its evaluations. */
export interface EvaluatedSpec {
  data: Pick<Data, 'validation_fraction'>;
  train: Pick<ResolvedJobSpec['train'], 'evaluation'>;
}

/** Losses of an evaluation by name; null for a loss that is not finite. */
type EvaluationLosses = Readonly<Record<string, number | null>>;

/** Name of the evaluation on the part of the training data that is set aside. */
export const VALIDATION = 'validation';

const METRIC = 'eval_loss';

/** Returns the names of a job's evaluations, in their order. */
export function evaluationsOf({ data, train }: EvaluatedSpec): string[] {
  const named = train.evaluation?.datasets ?? [];
  return [...(data.validation_fraction > 0 ? [VALIDATION] : []), ...named.map(({ name }) => name)];
}

/** Returns the metric of an evaluation. */
export function metricOf(name: string): string {
  return name === VALIDATION ? METRIC : `${METRIC}/${name}`;
}

/** Returns the value of a metric of evaluations; undefined without such an evaluation, and for other metrics. */
export function lossOf(losses: EvaluationLosses | undefined, metric: string): number | null | undefined {
  return Object.entries(losses ?? {}).find(([name]) => metricOf(name) === metric)?.[1];
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
