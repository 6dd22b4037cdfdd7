import type { Dataset, FieldError, JobSpec, Model, ResolvedJobSpec } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';
import { trainingPointersOf } from '../mixture.js';
import { architectureOf } from '../model/families/families.js';
import type { InitSource } from './init/source.js';

type Data = JobSpec['data'];
type ResolvedData = ResolvedJobSpec['data'];

/**
 * Sources named by a document's data, as far as they could be looked up; rules about missing ones are
 * skipped.
 */
export interface DataSources {
  /** Datasets of the training, in their order. */
  datasets: readonly (Dataset | null)[];
  /** Datasets of `train.evaluation`, in their order. */
  evaluation: readonly (Dataset | null)[];
  /** Source of `model.init_from`. */
  source: InitSource | null;
  /** Model whose tokenizer is used. */
  tokenizer: Model | null;
  /** Default date of a template; null if unknown. */
  today: string | null;
}

/**
 * ChatML, for chats where neither the document nor the base has a template. A base without the tokens of ChatML reads
 * them as text; its own end-of-sequence token then ends an answer, so that the model learns to stop.
 */
export const DEFAULT_CHAT_TEMPLATE =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' }}" +
  "{% if message.role == 'assistant' and eos_token is defined and eos_token != '<|im_end|>' %}{{ eos_token }}{% endif %}" +
  "{{ '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/** Number of tokens of the `bytes` tokenizer. */
const BYTES_VOCAB_SIZE = 256;

const TOKENIZER = '/data/tokenizer';
const TEMPLATE = '/data/chat_template';
const CHAT = '/data/chat';

/**
 * Returns the model whose tokenizer is used, or the URI from which it will be copied; null if there is none
 * to look up.
 */
export function tokenizerModel({ tokenizer }: Pick<ResolvedData, 'tokenizer'>): string | null {
  return tokenizer === null || tokenizer === 'bytes' ? null : tokenizer;
}

export function resolveTokenizer(
  { tokenizer: given }: Data,
  { datasets, source }: Pick<DataSources, 'datasets' | 'source'>,
): ResolvedData['tokenizer'] {
  if (withTokens(datasets)) return null;
  if (given) return given;
  if (source !== null) return 'model' in source ? ownTokenizer(source.model) : tokenizerOf(source.spec);
  // The resolved document has null if its dataset has tokens.
  return given === null && datasets.includes(null) ? null : 'bytes';
}

/** Returns the first dataset that already has tokens. */
function withTokens(datasets: DataSources['datasets']): Dataset | undefined {
  return datasets.find((each) => each?.format === 'tokens') ?? undefined;
}

/**
 * Returns the model's own tokenizer, even if it cannot be read: training on bytes instead must be explicit.
 */
function ownTokenizer({ id, has_tokenizer, unread_tokenizer }: Model): string {
  return has_tokenizer || unread_tokenizer !== undefined ? id : 'bytes';
}

/** Returns the tokenizer of a job on tokens: that of its initial model, which most likely made the tokens. */
function tokenizerOf({ data, model: { init_from } }: ResolvedJobSpec): string {
  const begun = init_from !== null && 'model' in init_from ? init_from.model : 'bytes';
  return data.tokenizer ?? begun;
}

export function resolveTemplate(
  given: Data,
  sources: DataSources,
): Pick<ResolvedData, 'chat_template' | 'template_date'> {
  const chatTemplate = hasNoChats(sources) ? null : templateOf(given, sources);
  return { chat_template: chatTemplate, template_date: resolveDate(given, chatTemplate, sources) };
}

/**
 * Returns the template of the document, of the job that made the initial checkpoint, or of the tokenizer; otherwise the
 * default for data with chats.
 */
function templateOf(given: Data, sources: DataSources): string | null {
  const { datasets, evaluation, source, tokenizer } = sources;
  if (given.chat_template) return given.chat_template;
  const name = resolveTokenizer(given, sources);
  const before = source !== null && 'spec' in source ? source.spec.data : null;
  const kept = before?.tokenizer === name ? before.chat_template : null;
  const found = kept ?? tokenizer?.tokenizer?.chat_template ?? null;
  const hasChats = [...datasets, ...evaluation].some((each) => each !== null && each.num_chats > 0);
  return found ?? (hasChats && !isUnknown({ tokenizer: name }, sources) ? DEFAULT_CHAT_TEMPLATE : null);
}

/** Returns the datasets of a job, with the JSON pointers of the fields that name them. */
export function datasetPointersOf(
  data: Data,
  { datasets, evaluation }: DataSources,
): (readonly [string, Dataset | null])[] {
  const evaluated = evaluation.map((each, i) => [`/train/evaluation/datasets/${i}/dataset`, each] as const);
  return [...trainingPointersOf(data).map((at, i) => [at, datasets[i] ?? null] as const), ...evaluated];
}

/** A session has no datasets; its template is for answers. */
function hasNoChats({ datasets, evaluation }: DataSources): boolean {
  const all = [...datasets, ...evaluation];
  return all.length > 0 && all.every((each) => each?.num_chats === 0);
}

/** Fixes the date once, so that tokens made on another day, or by a fork, are the same. */
function resolveDate(
  { template_date: given = null }: Data,
  template: string | null,
  { source, today }: DataSources,
): string | null {
  if (!usesDate(template)) return null;
  const before = source !== null && 'spec' in source ? source.spec.data : null;
  const same = before?.chat_template === template ? before.template_date : null;
  return given ?? same ?? today;
}

function usesDate(template: string | null): boolean {
  return template !== null && /\bstrftime_now\b/.test(template);
}

/** Checks that the tokens of the data are tokens of the model. */
export function checkVocabulary({ model, data }: ResolvedJobSpec, sources: DataSources): FieldError[] {
  const { tokenizer } = sources;
  const { vocab_size } = architectureOf(model.config);
  if (data.tokenizer === 'bytes' && vocab_size < BYTES_VOCAB_SIZE) {
    return [
      fieldError(
        model.preset === null ? '/model/config/vocab_size' : '/model/preset',
        'vocab_too_small',
        `the bytes tokenizer has ${BYTES_VOCAB_SIZE} tokens, and vocab_size is ${vocab_size}`,
        String(BYTES_VOCAB_SIZE),
      ),
    ];
  }
  const tokens = tokenizer?.tokenizer?.vocab_size ?? 0;
  if (tokenizer !== null && tokens > vocab_size) {
    const message =
      `${named(tokenizer)} has ${tokens} tokens, and the model's vocab_size is ${vocab_size}; ` +
      `use the tokenizer of the model, or train a model with a vocab_size of at least ${tokens}`;
    return [fieldError(TOKENIZER, 'vocab_too_small', message)];
  }
  return datasetPointersOf(data, sources).flatMap(([at, each]) => checkLargestToken(at, each, vocab_size));
}

function checkLargestToken(at: string, dataset: Dataset | null, vocabSize: number): FieldError[] {
  const maxToken = dataset?.max_token ?? -1;
  if (maxToken < vocabSize) return [];
  const message =
    `dataset ${dataset?.id} has the token ${maxToken}, and the model's vocab_size is ${vocabSize}; ` +
    `encode the data with the model's tokenizer, or train a model with a vocab_size of at least ${maxToken + 1}`;
  return [fieldError(at, 'vocab_too_small', message)];
}

function named({ id, model_type }: Model): string {
  return model_type === null ? `the tokenizer ${id}` : `the tokenizer of model ${id}`;
}

/** @param given the data of the document, to find fields without effect */
export function checkTokenizer(given: Data, resolved: ResolvedData, sources: DataSources): FieldError[] {
  const { datasets, tokenizer } = sources;
  const errors: FieldError[] = [];
  const encoded = withTokens(datasets);
  if (encoded && given.tokenizer)
    errors.push(
      fieldError(TOKENIZER, 'field_without_effect', `dataset ${encoded.id} already contains tokens; omit it`),
    );
  if (tokenizer !== null && tokenizer.tokenizer === null)
    errors.push(fieldError(TOKENIZER, 'tokenizer_missing', withoutTokenizer(tokenizer)));
  return [...errors, ...checkTemplate(given, sources), ...checkDate(given, resolved, sources)];
}

function withoutTokenizer({ id, unread_tokenizer }: Model): string {
  if (unread_tokenizer !== undefined)
    return (
      `model ${id} has only ${unread_tokenizer.join(' and ')} as tokenizer, which is not supported; upload the model with the ` +
      'tokenizer.json that AutoTokenizer.from_pretrained(folder).save_pretrained(folder) of transformers writes, name another ' +
      'model that has one, or use "bytes"'
    );
  return `model ${id} has no tokenizer.json and no tokenizer.model; use a model that has one, or bytes`;
}

function checkTemplate(given: Data, sources: DataSources): FieldError[] {
  if (sources.datasets.includes(null)) return [];
  const useless = Object.entries({ [TEMPLATE]: given.chat_template, [CHAT]: given.chat }).filter(
    ([, value]) => hasNoChats(sources) && value,
  );
  if (useless.length > 0)
    return useless.map(([at]) => fieldError(at, 'field_without_effect', 'the data has no chats; omit it'));
  return [];
}

function checkDate(given: Data, resolved: ResolvedData, sources: DataSources): FieldError[] {
  const { chat_template } = resolved;
  const unknown = sources.datasets.includes(null) || isUnknown(resolved, sources);
  if (unknown || !given.template_date || usesDate(chat_template)) return [];
  const message = 'template_date has no effect: the chat template does not use strftime_now; omit it';
  return [fieldError('/data/template_date', 'field_without_effect', message)];
}

/** The template of a tokenizer that could not be looked up is unknown. */
export function isUnknown(resolved: Pick<ResolvedData, 'tokenizer'>, { tokenizer }: DataSources): boolean {
  return tokenizerModel(resolved) !== null && !tokenizer?.tokenizer;
}
