import type { Dataset, FieldError, JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import { defaultsOf } from '../common/defaults.js';
import { fieldError } from '../common/field-error.js';
import { reinforcementOf, unitOf, unitsOf } from '../objective.js';
import { type DataSources, resolveTemplate, resolveTokenizer } from './tokenizer.js';

type Data = JobSpec['data'];
type ResolvedData = ResolvedJobSpec['data'];

/** Minimum of `train.sequence_length` in the schema. */
const MIN_SEQUENCE_LENGTH = 8;

/** @param given a part of the document at `at`; content at a URI has the stated format, a dataset its own */
export function checkFormat(at: string, given: Pick<Data, 'format' | 'uri'>): FieldError[] {
  if (given.format === undefined || given.uri !== undefined) return [];
  return [fieldError(`${at}/format`, 'field_without_effect', 'a dataset already has a format; omit it')];
}

export function resolveData(
  { uri: _, format: __, dataset, mixture, chat, ...given }: Data,
  sources: DataSources,
  { objective }: Pick<ResolvedJobSpec['train'], 'objective'>,
): ResolvedData {
  return {
    ...defaultsOf('DataSpec'),
    // Parts of a chat, or of a preference, have little value without each other.
    packing:
      sources.datasets.some((each) => each?.format === 'jsonl') || objective !== undefined
        ? 'whole'
        : 'split',
    ...given,
    // A session reads none.
    ...(sources.datasets.length > 0 && namedDatasets({ dataset, mixture })),
    tokenizer: resolveTokenizer(given, sources),
    ...withChat(resolveTemplate(given, sources), objective === undefined ? (chat ?? {}) : null),
  };
}

/**
 * Data that was not looked up, or has to be copied first, has no id yet: the caller that records the document sets it.
 */
function namedDatasets({
  dataset = '',
  mixture,
}: Pick<Data, 'dataset' | 'mixture'>): Pick<ResolvedData, 'dataset' | 'mixture'> {
  if (mixture === undefined) return { dataset };
  const entries = mixture.map(({ dataset = '', weight }) => ({
    dataset,
    ...(weight !== undefined && { weight }),
  }));
  return { mixture: entries };
}

/** @param chat null for an objective whose completions are learned as a whole */
function withChat(template: ReturnType<typeof resolveTemplate>, chat: Data['chat'] | null) {
  // Only a template renders chats.
  if (template.chat_template === null || chat === null) return template;
  return { ...template, chat: { ...defaultsOf('ChatSpec'), ...chat } };
}

export function checkData({ data, train }: ResolvedJobSpec, dataset: Dataset): FieldError[] {
  const unit = unitOf(train);
  if (unit !== null && data.validation_fraction > 0 && unitsOf(dataset, unit) === 1) {
    const message = `dataset ${dataset.id} has preferences for a single sample: a validation split needs at least two`;
    return [fieldError('/data/validation_fraction', 'dataset_too_small', message, '0')];
  }
  const sequences = sequencesOf(dataset, data, train.sequence_length);
  if (sequences === null || dataset.num_tokens === null) return [];
  if (sequences === 0) {
    return [
      fieldError(
        '/train/sequence_length',
        'sequence_longer_than_data',
        `a sequence of ${train.sequence_length} needs ${train.sequence_length + 1} tokens, ` +
          `dataset ${dataset.id} has ${dataset.num_tokens}`,
        dataset.num_tokens > MIN_SEQUENCE_LENGTH ? String(dataset.num_tokens - 1) : undefined,
      ),
    ];
  }
  if (data.validation_fraction > 0 && sequences < 2) {
    return [
      fieldError(
        '/data/validation_fraction',
        'dataset_too_small',
        `dataset ${dataset.id} has a single sequence of ${train.sequence_length} tokens: a validation split needs at least two`,
        '0',
      ),
    ];
  }
  return [];
}

/** Returns null if the number depends on the tokens. */
export function sequencesOf(
  { num_tokens, format }: Dataset,
  data: ResolvedData,
  length: number,
): number | null {
  if (num_tokens === null || format === 'tokens' || data.tokenizer !== 'bytes') return null;
  // A sample is `length` inputs and as many targets, shifted by one. A remainder is padded, or dropped when
  // texts are split.
  const sequences = (num_tokens - 1) / length;
  return data.packing === 'split' ? Math.floor(sequences) : Math.ceil(sequences);
}

type SampledTrain = Pick<ResolvedJobSpec['train'], 'sequence_length' | 'objective'>;

/**
 * Returns the samples of an epoch, which batches count, if the document and the records of its datasets determine them;
 * null if they depend on the tokens. Preferences that are left out for lack of targets are included.
 */
export function samplesPerEpoch(
  datasets: readonly (Dataset | null)[],
  data: ResolvedData,
  train: SampledTrain,
): number | null {
  return sumOf(datasets.map((dataset) => samplesOf(dataset, data, train)));
}

/** Returns the sum; null if one of the numbers is unknown. */
function sumOf(numbers: readonly (number | null)[]): number | null {
  return numbers.reduce((sum, each) => (sum === null || each === null ? null : sum + each), 0);
}

function samplesOf(dataset: Dataset | null, data: ResolvedData, train: SampledTrain): number | null {
  if (dataset === null) return null;
  if (reinforcementOf(train) !== null) return dataset.num_documents;
  const unit = unitOf(train);
  const all = unit === null ? sequencesOf(dataset, data, train.sequence_length) : unitsOf(dataset, unit);
  if (all === null || data.validation_fraction === 0) return all;
  return all - Math.min(all - 1, Math.max(1, Math.round(all * data.validation_fraction)));
}

/** Data of which at least the size may be known. */
export interface SizedData {
  datasets: readonly (Dataset | null)[];
  /** Size of the objects that are no datasets yet, together; null: unknown. */
  bytes: number | null;
}

/** Mean size of a token of text. */
const BYTES_OF_TOKEN = 4;

/**
 * Returns the samples of an epoch, estimated by the size of the data where they depend on the tokens; null if nothing
 * is known about the data.
 */
export function estimatedSamples(
  { datasets, bytes }: SizedData,
  data: ResolvedData,
  train: SampledTrain,
): number | null {
  const tokensOf = (size: number) => size / (data.tokenizer === 'bytes' ? 1 : BYTES_OF_TOKEN);
  const samplesIn = (tokens: number) => ((1 - data.validation_fraction) * tokens) / train.sequence_length;
  const ofDatasets = datasets.map((dataset) => {
    if (dataset === null) return 0;
    const uploaded = dataset.format === 'tokens' ? dataset.num_tokens : null;
    return samplesOf(dataset, data, train) ?? samplesIn(uploaded ?? tokensOf(dataset.bytes));
  });
  const ofObjects = datasets.includes(null) ? bytes && samplesIn(tokensOf(bytes)) : 0;
  return sumOf([...ofDatasets, ofObjects]);
}
