/** Evaluations of a job: their names and data. */
import { VALIDATION } from '../contracts/evaluation-metrics.js';
import type { ResolvedJobSpec } from '../contracts/types.js';
import { type DataSection, trainingSectionsOf } from './mixture.js';

type Data = ResolvedJobSpec['data'];

/** The sections of a document that define its evaluations. */
export interface EvaluatedSpec {
  data: Pick<Data, 'validation_fraction'>;
  train: Pick<ResolvedJobSpec['train'], 'evaluation'>;
}

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
