/** The document of a run that is being written: a JSON object, of which the form shows some fields. */
import type { Checkpoint, Dataset, Job, JobSpec } from '../../../contracts/types.js';
import { modelFrom } from '../../typescript/fork-document.js';
import type { Path } from '../parts/fields.js';

/** A document as far as it is written. */
export type Draft = Readonly<Record<string, unknown>>;

export const FIRST_DRAFT: Draft = { model: { preset: 'llama-tiny' }, train: { epochs: 3 } };

/** Returns a field; undefined if it is not given. Items of a list are named by their index. */
export function valueAt(draft: unknown, path: Path): unknown {
  return path.reduce((value, name) => {
    if (Array.isArray(value)) return value[Number(name)];
    return isObject(value) ? value[name] : undefined;
  }, draft);
}

/**
 * Returns the draft with another value of a field. `undefined` removes the field, and objects and lists that are empty
 * without it.
 */
export function withValue(draft: Draft, [name = '', ...rest]: Path, value: unknown): Draft {
  const { [name]: old, ...others } = draft;
  const changed = rest.length === 0 ? value : within(old, rest, value);
  return changed === undefined || (rest.length > 0 && isEmpty(changed))
    ? others
    : { ...draft, [name]: changed };
}

function within(old: unknown, path: Path, value: unknown): unknown {
  if (!Array.isArray(old)) return withValue(isObject(old) ? old : {}, path, value);
  const [index, ...rest] = path;
  const at = Number(index);
  const item = rest.length === 0 ? value : within(old[at], rest, value);
  return [...old.slice(0, at), ...(item === undefined ? [] : [item]), ...old.slice(at + 1)];
}

const isEmpty = (value: unknown) =>
  (Array.isArray(value) && value.length === 0) || (isObject(value) && Object.keys(value).length === 0);

/** Methods of training the weights. */
export const METHODS = ['full', 'lora', 'dora'] as const;
type Method = (typeof METHODS)[number];

export function methodOf(draft: Draft): Method {
  const adapter = valueAt(draft, ['train', 'adapter']);
  if (!isObject(adapter)) return 'full';
  return adapter.type === 'dora' ? 'dora' : 'lora';
}

/** Changes the method; settings of adapters stay while there are adapters. */
export function withMethod(draft: Draft, method: Method): Draft {
  if (method === 'full') return withValue(draft, ['train', 'adapter'], undefined);
  const adapter = valueAt(draft, ['train', 'adapter']);
  return withValue(draft, ['train', 'adapter'], { ...(isObject(adapter) ? adapter : {}), type: method });
}

/** Objectives that a dataset allows, the usual one first. */
export function objectivesOf({
  num_prompts,
  num_preferences,
  num_labelled,
  num_chats,
}: Pick<Dataset, 'num_prompts' | 'num_preferences' | 'num_labelled' | 'num_chats'>): readonly string[] {
  if (num_prompts > 0) return ['grpo'];
  if (num_preferences > 0) return ['dpo', 'ipo', 'orpo', 'simpo', 'kto'];
  if (num_labelled > 0) return ['kto'];
  return num_chats > 0 ? ['sft', 'grpo'] : ['sft'];
}

export const objectiveOf = (draft: Draft): string =>
  String(valueAt(draft, ['train', 'objective', 'type']) ?? 'sft');

/** Fields that reinforcement learning does not have, because it samples its data. */
const OF_TEXTS: readonly Path[] = [
  ['data', 'packing'],
  ['data', 'validation_fraction'],
  ['train', 'evaluation'],
];

export function withObjective(draft: Draft, type: string): Draft {
  const chosen = withValue(draft, ['train', 'objective'], type === 'sft' ? undefined : { type });
  if (type !== 'grpo') return chosen;
  return OF_TEXTS.reduce((changed, path) => withValue(changed, path, undefined), chosen);
}

/**
 * Chooses a dataset, and its usual objective unless it allows the present one. A template stays where there are chats.
 */
export function withDataset(draft: Draft, dataset: Dataset): Draft {
  const others = ['uri', 'mixture'];
  const named = others.reduce(
    (before, name) => withValue(before, ['data', name], undefined),
    withValue(draft, ['data', 'dataset'], dataset.id),
  );
  const ofChats = dataset.num_chats > 0 ? [] : ['chat_template', 'packing'];
  const chosen = ofChats.reduce((before, name) => withValue(before, ['data', name], undefined), named);
  const objectives = objectivesOf(dataset);
  const [usual = 'sft'] = objectives;
  return objectives.includes(objectiveOf(draft)) ? chosen : withObjective(chosen, usual);
}

/** Value of the choice of a model: a preset, an uploaded model, or what else the document names. */
export function baseOf(draft: Draft): string {
  const init = valueAt(draft, ['model', 'init_from']);
  const from = isObject(init) ? (init.model ?? init.checkpoint ?? init.uri) : init;
  const preset = valueAt(draft, ['model', 'preset']);
  return String(from ?? preset ?? '');
}

/** Names of folders on the Hub and in buckets begin so. */
const URI = /^(hf|s3):\/\//;
export const isUri = (base: string) => URI.test(base);

/** Begins with a preset's random weights, an uploaded model, or a model by its URI. */
export function withBase(draft: Draft, base: string): Draft {
  const isUpload = base.startsWith('mdl_');
  return withModel(
    draft,
    isUpload ? { init_from: { model: base } } : isUri(base) ? { init_from: base } : { preset: base },
  );
}

// A tokenizer belongs to the model that it was chosen for.
const withModel = (draft: Draft, model: object) =>
  withValue(withValue(draft, ['model'], model), ['data', 'tokenizer'], undefined);

/** How a run begins with a checkpoint. */
export type Restore = 'continue' | 'weights';

export type Begun = Pick<Job, 'id' | 'name'> & { spec: Pick<Job['spec'], 'model'> };

/** Begins with a checkpoint of a run. */
export function withCheckpoint(draft: Draft, { spec }: Begun, checkpoint: string, restore: Restore): Draft {
  return withModel(draft, modelFrom(spec.model, checkpoint, restore));
}

/**
 * The document of a run that continues `run`, with another name and twice the length. It begins with the document as
 * given, not as resolved, so that defaults follow changed fields.
 */
export function forkOf(given: Draft, run: Begun, { id }: Pick<Checkpoint, 'id'>): Draft {
  const { train } = given;
  const longer = ['steps', 'epochs'].reduce((changed, name) => {
    const length = valueAt(train, [name]);
    return typeof length === 'number' ? withValue(changed, ['train', name], 2 * length) : changed;
  }, given);
  const begun = withValue(longer, ['model'], withCheckpoint({}, run, id, 'continue').model);
  const unnoted = withValue(begun, ['notes'], undefined);
  return withValue(unnoted, ['name'], run.name === '' ? undefined : nextName(run.name));
}

/** `name-2` after `name`, `name-3` after `name-2`. */
export function nextName(name: string): string {
  const [, stem = name, number = '1'] = /^(.*)-([1-9]\d{0,5})$/.exec(name) ?? [];
  return `${stem}-${Number(number) + 1}`;
}

/** A draft that was written as JSON. @throws SyntaxError, also for JSON that is no object */
export function parseDraft(text: string): Draft {
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) throw new SyntaxError('a document is a JSON object');
  return value;
}

/** The server checks what the form does not. */
export const asSpec = (draft: Draft) => draft as unknown as JobSpec;

/** The part of a document that decides what is read of its data. */
export function dataPartOf(draft: Draft): string {
  const { sequence_length, objective } = (valueAt(draft, ['train']) ?? {}) as Record<string, unknown>;
  return JSON.stringify([draft.data, draft.model, sequence_length, objective]);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
