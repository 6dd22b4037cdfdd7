import type { Dataset, FieldError, JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import { baseFault } from '../common/base-fault.js';
import { fieldsOfType, filledByType } from '../common/defaults.js';
import { fieldError, withoutEffect } from '../common/field-error.js';
import { type Preferences, preferencesOf, reinforcementOf, type Unit, unitOf } from '../objective.js';
import { checkReinforcement, resolveReinforcement } from '../reinforcement/settings.js';
import { type DataSources, datasetPointersOf } from './tokenizer.js';

type Train = NonNullable<JobSpec['train']>;
type Objective = NonNullable<Train['objective']>;
type ResolvedTrain = ResolvedJobSpec['train'];

const AT = '/train/objective';
/** A worker keeps the prompts of its job in memory. */
const MAX_PROMPT_BYTES = 256 * 2 ** 20;

/** KTO estimates its reference point over the sequences of a micro-batch; one alone would be noise. */
export const MIN_MICRO_BATCH_OF_KTO = 2;

/** @param train the resolved adapter determines the default of `reference`, `sequence_length` that of `max_tokens` */
export function resolveObjective(
  given: Objective | undefined,
  { adapter, sequence_length }: Pick<ResolvedTrain, 'adapter' | 'sequence_length'>,
): Pick<ResolvedTrain, 'objective'> {
  if (given === undefined || given.type === 'sft') return {};
  if (given.type === 'grpo') return { objective: resolveReinforcement(given, sequence_length) };
  // The default of a job with a base; a type without a reference leaves it out.
  const reference = baseFault(adapter) === null && { reference: 'base' as const };
  const { type } = given;
  return { objective: filledByType<Preferences>('ObjectiveSpec', { ...reference, ...given, type }) };
}

/** @param document the document as given, to find fields without effect */
export function checkObjective(
  { train: { objective: given } = {}, data: { packing, chat } }: Pick<JobSpec, 'train' | 'data'>,
  { train }: ResolvedJobSpec,
): FieldError[] {
  if (given === undefined) return [];
  const reinforcement = reinforcementOf(train);
  if (reinforcement !== null) return checkReinforcement(given, reinforcement, train);
  const { type } = given;
  const errors = withoutEffect(AT, given, fieldsOfType('ObjectiveSpec', type), `with the objective ${type}`);
  const preferences = preferencesOf(train);
  if (preferences === null) return errors;
  const fault = preferences.reference === 'base' ? baseFault(train.adapter) : null;
  if (fault !== null)
    errors.push(fieldError(`${AT}/reference`, fault.code, `${fault.message}, or write initial`, 'initial'));
  if (type === 'kto' && train.micro_batch_size < MIN_MICRO_BATCH_OF_KTO) {
    const message =
      'kto estimates its reference point over the sequences of a micro-batch, so it needs at least 2';
    errors.push(
      fieldError('/train/micro_batch_size', 'out_of_range', message, String(MIN_MICRO_BATCH_OF_KTO)),
    );
  }
  if (chat !== undefined)
    errors.push(
      fieldError(
        '/data/chat',
        'field_without_effect',
        `with the objective ${type} a completion is learned as a whole; omit it`,
      ),
    );
  if (packing !== undefined && packing !== 'whole') {
    const message = `with the objective ${type} each completion with its prompt is a sequence of its own; omit packing`;
    errors.push(fieldError('/data/packing', 'field_without_effect', message, 'whole'));
  }
  return errors;
}

/** Checks that the objective can read every document of the datasets. */
export function checkDatasets(resolved: ResolvedJobSpec, sources: DataSources): FieldError[] {
  return datasetPointersOf(resolved.data, sources).flatMap(([at, each]) =>
    each === null ? [] : checkDocuments(at, each, resolved.train),
  );
}

function checkDocuments(at: string, dataset: Dataset, train: ResolvedTrain): FieldError[] {
  const { id, num_documents, num_preferences, num_labelled, num_prompts } = dataset;
  const unit = unitOf(train);
  const type = train.objective?.type ?? 'sft';
  if (type === 'grpo') return checkPrompts(at, dataset);
  if (num_prompts > 0) {
    const message =
      `dataset ${id} has ${num_prompts} prompts without a completion, which the objective ${type} does not read: ` +
      'add the completions, or set train.objective to {"type": "grpo"} with a grader';
    return [fieldError(at, 'dataset_has_prompts', message)];
  }
  if (unit === null) {
    if (num_preferences + num_labelled === 0) return [];
    const message =
      `dataset ${id} has ${counted(dataset)}, which the objective sft does not read: ` +
      `set train.objective, e.g. {"type": "${num_preferences > 0 ? 'dpo' : 'kto'}"}, or name a dataset of texts or chats`;
    return [fieldError(at, 'dataset_has_preferences', message)];
  }
  const readable = num_preferences + (unit === 'labelled' ? num_labelled : 0);
  if (readable === num_documents) return [];
  const message =
    `the objective ${type} does not read ${num_documents - readable} of the ${num_documents} documents of dataset ${id}, ` +
    `which has format=${dataset.format}; ${remedy(unit, dataset)}`;
  return [fieldError(at, 'dataset_without_preferences', message)];
}

function checkPrompts(at: string, { id, format, bytes }: Dataset): FieldError[] {
  if (format !== 'jsonl') {
    const message = `the objective grpo reads prompts, and dataset ${id} has format=${format}; upload lines {"messages": […]} or {"prompt": …} as format=jsonl`;
    return [fieldError(at, 'dataset_without_prompts', message)];
  }
  if (bytes <= MAX_PROMPT_BYTES) return [];
  const message = `the objective grpo reads datasets of at most ${MAX_PROMPT_BYTES / 2 ** 20} MiB, and ${id} has ${bytes} bytes; upload fewer prompts`;
  return [fieldError(at, 'dataset_too_large', message)];
}

function counted({ num_preferences, num_labelled }: Dataset): string {
  const counts = [
    ...(num_preferences > 0 ? [`${num_preferences} pairs of completions`] : []),
    ...(num_labelled > 0 ? [`${num_labelled} labelled completions`] : []),
  ];
  return counts.join(' and ');
}

function remedy(unit: Unit, { num_documents, num_labelled }: Dataset): string {
  if (unit === 'pair' && num_labelled === num_documents)
    return 'labelled completions are read by kto: set train.objective.type to kto, or upload pairs';
  const line =
    unit === 'pair'
      ? '{"prompt": …, "chosen": …, "rejected": …}'
      : '{"prompt": …, "completion": …, "label": true} or {"prompt": …, "chosen": …, "rejected": …}';
  return `upload a dataset of format=jsonl in which each line is ${line}`;
}
