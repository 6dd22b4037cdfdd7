/**
 * Resolution of a Hugging Face `config.json` to a configuration with every field of its family. The import is
 * strict: a field that would change the mathematics, and is not supported, is an error that names it.
 *
 * Source of names and defaults: models/<family>/configuration_<family>.py and modeling_rope_utils.py of
 * transformers 5.18, and the output of transformers 4.
 */

import { frozen } from '../../contracts/frozen.js';
import type {
  FieldError,
  FieldErrorCode,
  ModelConfig,
  ResolvedModelConfig,
  Warning,
} from '../../contracts/index.js';
import { nearestName } from '../../contracts/nearest-name.js';
import { fieldError } from '../common/field-error.js';
import { FAMILIES, familyOf, MODEL_TYPES, type ModelType } from './families/families.js';
import type { Family } from './families/family.js';
import { FIELDS } from './families/fields.js';
import type { FieldFact, FieldSchema } from './field-facts.js';
import { readCommon } from './harmless.js';
import { ConfigReader } from './reader.js';
import { checkShapes } from './shape-rules.js';

interface ImportedConfig {
  /** Null when a field could not be read; with other errors, the configuration of the readable fields. */
  config: ResolvedModelConfig | null;
  /** All bad fields; pointers begin at the configuration. */
  errors: FieldError[];
  /** Warnings of fields without effect. */
  warnings: Warning[];
}

/** Codes of errors that affect one field only. */
const LEAVES_SOUND: ReadonlySet<string> = new Set<FieldErrorCode>([
  'unknown_field',
  'model_field_unsupported',
]);

export function importConfig(document: ModelConfig | Readonly<Record<string, unknown>>): ImportedConfig {
  const { model_type } = document;
  if (!isModelType(model_type)) return { config: null, errors: [unknownFamily(model_type)], warnings: [] };
  const family = FAMILIES[model_type];
  const reader = new ConfigReader(document);
  readCommon(reader, family);
  const read = family.read(reader);
  const config = frozen(withTokenIds(read, reader));
  reader.finish();
  const { errors, warnings } = reader;
  // A bad number would cause misleading errors of related fields.
  if (!errors.every(({ code }) => LEAVES_SOUND.has(code))) return { config: null, errors, warnings };
  return { config, errors: [...errors, ...checkShapes(config)], warnings };
}

/** Returns the fields of a family's `config.json`, for docs/models.md. */
export function fieldsOf(type: ModelType): FieldFact[] {
  const { facts, family } = emptyRead(type);
  return facts.map((fact) => ({ ...fact, schema: schemaOf(family, fact.name, fact) }));
}

/** Returns the schema of each field of a configuration with every field. */
export function configSchema(type: ModelType): Record<string, FieldSchema> {
  const { facts, family, config } = emptyRead(type);
  const factOf = new Map(facts.map((fact) => [fact.name, fact]));
  return Object.fromEntries(
    Object.keys(config).map((name) => [name, schemaOf(family, name, factOf.get(name))]),
  );
}

export function describedFamily(type: ModelType): string {
  return FAMILIES[type].description;
}

/** Reads a configuration without fields: the reader learns all of them. */
function emptyRead(type: ModelType): { facts: FieldFact[]; family: Family; config: ResolvedModelConfig } {
  const reader = new ConfigReader({});
  const family = FAMILIES[type] as Family;
  return { config: family.read(reader), facts: reader.facts, family };
}

function schemaOf({ fields }: Family, name: string, fact: FieldFact | undefined): FieldSchema {
  return { ...fact?.schema, ...(fields?.[name] ?? FIELDS[name]) };
}

/** Returns the dotted paths of a configuration's fields that are not integers by type. */
export function floatFields(config: ResolvedModelConfig): Set<string> {
  const reader = new ConfigReader({ ...config });
  familyOf(config).read(reader);
  return new Set(reader.facts.filter(({ type }) => type.startsWith('number')).map(({ name }) => name));
}

/** Returns the transformers class that loads the weights of such a model. */
export function causalLmClass(config: ResolvedModelConfig): string {
  return familyOf(config).causalLm;
}

function withTokenIds(config: ResolvedModelConfig, reader: ConfigReader): ResolvedModelConfig {
  const ids = {
    bos_token_id: reader.tokenId('bos_token_id'),
    eos_token_id: reader.tokenId('eos_token_id'),
    pad_token_id: reader.tokenId('pad_token_id'),
  };
  const given = Object.entries(ids).filter(([, id]) => id !== undefined);
  return { ...config, ...Object.fromEntries(given) };
}

const LINEAR_ATTENTION = 'Layers of linear attention are not supported';
/** Reasons why families of similar names are not supported. */
const REASONS: Readonly<Record<string, string>> = {
  qwen3_next: LINEAR_ATTENTION,
  granitemoehybrid: LINEAR_ATTENTION,
  gemma: 'Gemma 1 is not supported',
  gemma3: 'Images are not supported: upload the text model, of which model_type is gemma3_text',
};

function isModelType(value: unknown): value is ModelType {
  return typeof value === 'string' && Object.hasOwn(FAMILIES, value);
}

function unknownFamily(value: unknown): FieldError {
  const at = '/model_type';
  if (value === undefined) return fieldError(at, 'missing_field', 'model_type is required');
  const message = `${JSON.stringify(value)} is not a supported model_type; supported are ${MODEL_TYPES.join(', ')}`;
  if (typeof value === 'string' && Object.hasOwn(REASONS, value))
    return fieldError(at, 'unknown_value', `${message}. ${REASONS[value]}`);
  return fieldError(
    at,
    'unknown_value',
    message,
    typeof value === 'string' ? nearestName(value, MODEL_TYPES) : undefined,
  );
}
