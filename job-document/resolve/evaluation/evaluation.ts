import { metricOf, VALIDATION } from '../../../contracts/evaluation-metrics.js';
import type { Dataset, FieldError, JobSpec, ResolvedJobSpec } from '../../../contracts/index.js';
import { nearestName } from '../../../contracts/nearest-name.js';
import { defaultsOf } from '../../common/defaults.js';
import { fieldError } from '../../common/field-error.js';
import { type EvaluatedSpec, evaluationSectionsOf, evaluationsOf } from '../../evaluation.js';
import { reinforcementOf } from '../../objective.js';
import { checkFormat, sequencesOf } from '../data.js';
import type { DataSources } from '../tokenizer.js';

type Train = NonNullable<JobSpec['train']>;
type Evaluation = NonNullable<Train['evaluation']>;

const AT = '/train/evaluation';

/** Remedy in messages about missing evaluations. */
export const EVALUATE =
  'set data.validation_fraction, e.g. 0.05, or list datasets in train.evaluation.datasets';

/** Without data to evaluate on there is no such section. */
export function resolveEvaluation(
  given: Evaluation = {},
  { validation_fraction }: Pick<ResolvedJobSpec['data'], 'validation_fraction'>,
): EvaluatedSpec['train'] {
  const { datasets, ...rest } = { ...defaultsOf('EvaluationSpec'), ...given };
  if (validation_fraction === 0 && datasets.length === 0) return {};
  // An object that was not copied has no id yet.
  const named = datasets.map(({ name, dataset = '' }) => ({ name, dataset }));
  return { evaluation: { ...rest, datasets: named } };
}

/** @param given the section of the document, to find fields without effect */
export function checkEvaluation(
  given: Evaluation | undefined,
  resolved: ResolvedJobSpec,
  sources: DataSources,
): FieldError[] {
  const { evaluation } = resolved.train;
  if (evaluation === undefined) {
    const message = `evaluation has no effect without data to evaluate on: ${EVALUATE}`;
    return given === undefined ? [] : [fieldError(AT, 'field_without_effect', message)];
  }
  return [
    ...(given?.datasets ?? []).flatMap((entry, i) => checkFormat(`${AT}/datasets/${i}`, entry)),
    ...checkNames(evaluation.datasets.map(({ name }) => name)),
    ...evaluationSectionsOf(resolved).flatMap((data, i) => {
      const dataset = sources.evaluation[i];
      return dataset && reinforcementOf(resolved.train) === null
        ? checkDataset(dataset, data, resolved.train, i, sources)
        : [];
    }),
  ];
}

function checkNames(names: readonly string[]): FieldError[] {
  return names.flatMap((name, i) => {
    const first = names.indexOf(name);
    if (name !== VALIDATION && first === i) return [];
    const owner =
      name === VALIDATION
        ? 'the evaluation on the data of data.validation_fraction'
        : `the dataset at ${AT}/datasets/${first}`;
    const message = `${name} is the name of ${owner}; choose another one`;
    return [fieldError(`${AT}/datasets/${i}/name`, 'evaluation_name_taken', message)];
  });
}

/** @param data the data section of the training, for this dataset */
function checkDataset(
  dataset: Dataset,
  data: ResolvedJobSpec['data'],
  { sequence_length }: ResolvedJobSpec['train'],
  index: number,
  sources: DataSources,
): FieldError[] {
  const at = `${AT}/datasets/${index}/dataset`;
  const { id, format, num_tokens } = dataset;
  if (sources.datasets.some((each) => each?.format === 'tokens') && format !== 'tokens') {
    const message = `dataset ${id} has texts, and the training data has tokens and so no tokenizer; upload its tokens (format=tokens)`;
    return [fieldError(at, 'tokenizer_missing', message)];
  }
  if (sequencesOf(dataset, data, sequence_length) !== 0) return [];
  const message =
    `a sequence of ${sequence_length} needs ${sequence_length + 1} tokens, dataset ${id} has ${num_tokens}; ` +
    'evaluate on more data, or set a smaller train.sequence_length';
  return [fieldError(at, 'sequence_longer_than_data', message)];
}

/** Checks that a job has the metric. */
export function checkMetric(at: string, metric: string, resolved: ResolvedJobSpec): FieldError[] {
  const metrics = evaluationsOf(resolved).map((name) => metricOf(name, resolved.train));
  if (metrics.includes(metric)) return [];
  const message = `the job has no metric ${metric}; write one of ${metrics.join(', ')}`;
  return [
    fieldError(
      at,
      'unknown_value',
      message,
      metrics.length === 1 ? metrics[0] : nearestName(metric, metrics),
    ),
  ];
}
