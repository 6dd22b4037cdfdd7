import type { ErrorObject } from 'ajv';
import { type FieldError, type FieldErrorCode, nearestName } from '../../contracts/index.js';

/** Keywords whose errors only repeat an error of a nested keyword. */
const SUMMARY_KEYWORDS = new Set(['propertyNames', 'allOf', 'anyOf', 'if']);

const CODE_OF_KEYWORD: Readonly<Record<string, FieldErrorCode>> = {
  type: 'wrong_type',
  enum: 'unknown_value',
  const: 'unknown_value',
  minimum: 'out_of_range',
  maximum: 'out_of_range',
  exclusiveMinimum: 'out_of_range',
  exclusiveMaximum: 'out_of_range',
  multipleOf: 'out_of_range',
  minLength: 'wrong_length',
  maxLength: 'wrong_length',
  minItems: 'wrong_length',
  maxItems: 'wrong_length',
  items: 'wrong_length',
  minProperties: 'wrong_length',
  maxProperties: 'wrong_length',
  pattern: 'wrong_format',
  format: 'wrong_format',
};

/** A document may have thousands of bad fields; a reply lists the first of them. */
const MAX_FIELD_ERRORS = 100;

/**
 * Every bad field found by a validator compiled with `allErrors` and `verbose`, each once and in the order found.
 *
 * @param prefix location of the document: '' for a body, `/query` and the like for parameters
 */
export function toFieldErrors(errors: readonly ErrorObject[], prefix = ''): FieldError[] {
  const unique = new Map<string, FieldError>();
  for (const error of errors) {
    if (SUMMARY_KEYWORDS.has(error.keyword) || isAlternative(error)) continue;
    if (unique.size === MAX_FIELD_ERRORS) break;
    const field = toFieldError(error, prefix);
    const key = `${field.pointer} ${field.code}`;
    if (!unique.has(key)) unique.set(key, field);
  }
  return [...unique.values()];
}

/** One step of a JSON pointer (RFC 6901). */
function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function toFieldError(error: ErrorObject, prefix: string): FieldError {
  const at = prefix + error.instancePath;
  switch (error.keyword) {
    case 'additionalProperties':
      return unknownField(error, at);
    case 'required': {
      const name = String(error.params.missingProperty);
      return {
        pointer: `${at}/${escapePointer(name)}`,
        code: 'missing_field',
        message: `${name} is required`,
      };
    }
    case 'oneOf':
      return exactlyOne(error, at);
    case 'enum':
      return unknownValue(error, at);
    default:
      return plainError(error, at);
  }
}

function unknownField(error: ErrorObject, at: string): FieldError {
  const name = String(error.params.additionalProperty);
  const known = propertyNames(error);
  const suggestion = usualName(name, known) ?? nearestName(name, known);
  return {
    pointer: `${at}/${escapePointer(name)}`,
    code: 'unknown_field',
    message: `${name} is not a known field`,
    ...(suggestion === undefined ? {} : { suggestion }),
  };
}

/**
 * Field names of other programs, each with the candidate fields here; the first one that the object has is suggested.
 */
const USUAL_NAMES: Readonly<Record<string, readonly string[]>> = {
  learning_rate: ['lr', 'optimizer.lr'],
  lr: ['optimizer.lr'],
  weight_decay: ['optimizer.weight_decay'],
  optimizer_type: ['optimizer.type'],
  batch_size: ['global_batch_size'],
  train_batch_size: ['global_batch_size'],
  per_device_train_batch_size: ['micro_batch_size'],
  max_steps: ['steps'],
  num_steps: ['steps'],
  iterations: ['steps'],
  seq_len: ['sequence_length'],
  seq_length: ['sequence_length'],
  max_length: ['sequence_length'],
  max_seq_length: ['sequence_length'],
  block_size: ['sequence_length'],
  context_length: ['sequence_length'],
  max_grad_norm: ['gradient_clipping'],
  grad_clip: ['gradient_clipping'],
  warmup: ['warmup_steps', 'lr_schedule.warmup_steps'],
  warmup_steps: ['lr_schedule.warmup_steps'],
  num_warmup_steps: ['warmup_steps', 'lr_schedule.warmup_steps'],
  lr_scheduler: ['lr_schedule'],
  lr_scheduler_type: ['lr_schedule.type'],
  scheduler: ['lr_schedule'],
  gradient_checkpointing: ['activation_checkpointing'],
  dtype: ['precision'],
  num_gpus: ['ranks', 'resources.ranks'],
  world_size: ['ranks', 'resources.ranks'],
  save_steps: ['every_steps', 'checkpoint.every_steps'],
  eval_steps: ['evaluation.every_steps'],
};

function usualName(name: string, known: readonly string[]): string | undefined {
  const paths = Object.hasOwn(USUAL_NAMES, name) ? (USUAL_NAMES[name] ?? []) : [];
  return paths.find((path) => known.includes(path.split('.')[0] ?? ''));
}

function unknownValue(error: ErrorObject, at: string): FieldError {
  const allowed = error.params.allowedValues.map(String) as string[];
  const suggestion =
    allowed.length === 1
      ? allowed[0]
      : typeof error.data === 'string'
        ? nearestName(error.data, allowed)
        : undefined;
  return {
    pointer: at,
    code: 'unknown_value',
    message: withReason(
      `must be ${allowed.length === 1 ? allowed[0] : `one of ${allowed.join(', ')}`}`,
      error,
    ),
    ...(suggestion === undefined ? {} : { suggestion }),
  };
}

function plainError(error: ErrorObject, at: string): FieldError {
  // A bad property name is reported at the property.
  const pointer = error.propertyName === undefined ? at : `${at}/${escapePointer(error.propertyName)}`;
  const message = error.message ?? 'is not valid';
  return {
    pointer,
    code: CODE_OF_KEYWORD[error.keyword] ?? 'wrong_format',
    message:
      error.params.type === 'null' || error.keyword === 'pattern' ? withReason(message, error) : message,
  };
}

/** Appends the reason from the description of a field with a single allowed value or with a pattern. */
function withReason(message: string, error: ErrorObject): string {
  const schema = error.parentSchema as { description?: string; enum?: unknown[] } | undefined;
  const isSingleValue = schema?.enum === undefined || schema.enum.length === 1;
  if (!isSingleValue || schema?.description === undefined) return message;
  return `${message}. ${schema.description.replaceAll(/\s+/g, ' ').trim()}`;
}

/** True for an error of one of several alternatives; the keyword `oneOf` itself reports these. */
function isAlternative({ schemaPath }: ErrorObject): boolean {
  return schemaPath.includes('/oneOf/');
}

/** Alternatives in a request are always fields of which exactly one is required. */
function exactlyOne(error: ErrorObject, at: string): FieldError {
  const alternatives = error.schema as { required?: string[] }[];
  const names = alternatives.flatMap(({ required = [] }) => required);
  return {
    pointer: at,
    code: 'exactly_one_of',
    message: `give exactly one of ${names.join(', ')}`,
  };
}

function propertyNames(error: ErrorObject): string[] {
  return Object.keys((error.parentSchema?.properties as object | undefined) ?? {});
}
