import type { Architecture } from '../../../contracts/architecture.js';
import type { Checkpoint, FieldError, ResolvedJobSpec } from '../../../contracts/index.js';
import { fieldError } from '../../common/field-error.js';
import { architectureOf } from '../../model/families/families.js';
import { preferencesOf } from '../../objective.js';
import { extraStatesOf } from '../optimizer.js';
import { frozenDifference, splitParams } from '../param-groups.js';
import type { InitFrom } from './given-init.js';
import { checkInitModel } from './init-model.js';
import { adapterIn, type CheckpointSource, type InitSource } from './source.js';

type ResolvedInitFrom = ResolvedJobSpec['model']['init_from'];

const AT = '/model/init_from';

/** Fields that determine the parameters and their shapes. */
const SHAPE_FIELDS = [
  'naming',
  'hidden_size',
  'intermediate_size',
  'num_hidden_layers',
  'num_attention_heads',
  'num_key_value_heads',
  'head_dim',
  'vocab_size',
  'qkv_bias',
  'output_bias',
  'mlp_bias',
  'qk_norm',
  'num_experts',
  'tie_word_embeddings',
] as const satisfies readonly (keyof Architecture)[];

/** Returns the checkpoint at whose step the job begins; null: it begins at step 0. */
export function continuedCheckpoint(
  given: InitFrom | undefined,
  source: InitSource | null,
): Checkpoint | null {
  return source !== null && 'checkpoint' in source && given?.restore === 'continue'
    ? source.checkpoint
    : null;
}

/** Returns null without a source: the document is refused then, or only its other rules are checked. */
export function resolveInitFrom(given: InitFrom | undefined, source: InitSource | null): ResolvedInitFrom {
  if (given === undefined || source === null) return null;
  if ('model' in source) {
    const { id } = source.model;
    const { restore } = given;
    return restore === 'full' || restore === 'weights_16bit' ? { model: id, restore } : { model: id };
  }
  const { id, job_id, prefix } = source.checkpoint;
  return { checkpoint: id, job: job_id, prefix, restore: given.restore ?? 'weights' };
}

export function checkInitFrom(spec: ResolvedJobSpec, source: InitSource | null): FieldError[] {
  const { init_from } = spec.model;
  if (init_from === null || source === null) return [];
  const adapters = checkAdapters(spec, source);
  if ('model' in source) return [...checkInitModel(spec, source), ...adapters];
  if ('model' in init_from) return [];
  const errors = [...checkShapes(spec, source), ...adapters];
  // Frozen parameters are only comparable between equal models.
  const { restore } = init_from;
  if (restore !== 'weights' && errors.length === 0) errors.push(...checkFullRestore(spec, source.spec));
  return errors;
}

/** Checks that the job has the source's adapters; those that the source does not have can be begun. */
function checkAdapters(spec: ResolvedJobSpec, source: InitSource): FieldError[] {
  const [ours, theirs] = [spec.train.adapter, adapterIn(source)].map(shapeOf);
  const { restore = 'weights' } = spec.model.init_from ?? {};
  const begins = theirs === undefined && restore === 'weights';
  if (ours === theirs || begins) return [];
  const [field, name] =
    'model' in source
      ? ['model', `model ${source.model.id}`]
      : ['checkpoint', `checkpoint ${source.checkpoint.id}`];
  const message =
    `${name} has ${theirs ?? 'no adapter'}, and the job ${ours ?? 'no adapter'}; ` +
    'omit train.adapter, give it the same type, rank and modules, or begin with the merged weights (POST /v1/models)';
  return [fieldError(`${AT}/${field}`, 'adapter_mismatch', message)];
}

/** Describes what determines the parameters of adapters, for messages and comparisons. */
function shapeOf(adapter: ResolvedJobSpec['train']['adapter']): string | undefined {
  if (adapter === undefined) return undefined;
  const { type, rank, target_modules, modules_to_save } = adapter;
  const whole =
    modules_to_save.length === 0 ? '' : ` and ${[...modules_to_save].sort().join(', ')} trained whole`;
  return `a ${type} adapter of rank ${rank} over ${[...target_modules].sort().join(', ')}${whole}`;
}

/**
 * Checks that the checkpoint has the optimizer states of every trained parameter, and that they are those of the same
 * training.
 */
function checkFullRestore(ours: ResolvedJobSpec, theirs: ResolvedJobSpec): FieldError[] {
  const [baseHere, baseThere] = [ours, theirs].map(({ model }) => model.quantization ?? 'training precision');
  if (baseHere !== baseThere) {
    const message = `the checkpoint was trained over a base in ${baseThere}, and the job has one in ${baseHere}`;
    return [fieldError(`${AT}/restore`, 'checkpoint_quantization_mismatch', message, 'weights')];
  }
  const [here, there] = [statesText(ours), statesText(theirs)];
  if (here !== there) {
    const message = `the checkpoint has optimizer state of ${there}, and the job uses ${here}`;
    return [fieldError(`${AT}/restore`, 'checkpoint_optimizer_mismatch', message, 'weights')];
  }
  const [objective, before] = [preferencesOf(ours.train), preferencesOf(theirs.train)];
  if (
    objective?.reference === 'initial' &&
    (before?.reference !== 'initial' || before.type !== objective.type)
  ) {
    const message =
      `the checkpoint has no reference of the objective ${objective.type}: keep the objective of its job, or write ` +
      'model.init_from.restore: weights, which makes the checkpoint itself the reference';
    return [fieldError('/train/objective', 'reference_not_kept', message)];
  }
  const changed = frozenDifference(splitParams(ours), splitParams(theirs));
  if (changed === null) return [];
  const message = `${changed} is frozen in one of the two jobs and trained in the other`;
  return [fieldError(`${AT}/restore`, 'checkpoint_frozen_mismatch', message, 'weights')];
}

/** Names the states of an optimizer, for messages and comparisons. */
function statesText({ train }: ResolvedJobSpec): string {
  return `${train.optimizer.type} (${extraStatesOf(train).join(', ') || 'no states'})`;
}

function checkShapes(spec: ResolvedJobSpec, { checkpoint, spec: from }: CheckpointSource): FieldError[] {
  const [ours, theirs] = [architectureOf(spec.model.config), architectureOf(from.model.config)];
  const different = SHAPE_FIELDS.filter((name) => ours[name] !== theirs[name]);
  if (different.length === 0) return [];
  const list = different.map((name) => `${name} ${theirs[name]} (here ${ours[name]})`).join(', ');
  return [
    fieldError(
      `${AT}/checkpoint`,
      'checkpoint_model_mismatch',
      `checkpoint ${checkpoint.id} is of another model: ${list}`,
    ),
  ];
}
