import type { FieldError, JobSpec, ResolvedJobSpec, ResolvedModelConfig } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';
import { architectureOf } from '../model/families/families.js';
import { importConfig } from '../model/import.js';
import { presets } from '../presets.js';
import type { InitSource } from './init/source.js';

const AT = '/model/config';

interface ReadConfig {
  /** Null when it could not be read. */
  config: ResolvedModelConfig | null;
  /** Errors of the configuration itself. */
  errors: FieldError[];
}

/** @param source source of `init_from`; the configuration of a model is used if the document has none */
export function resolveConfig(
  { config, preset }: JobSpec['model'],
  source: InitSource | null = null,
): ReadConfig {
  if (config !== undefined) return readConfig(config, (pointer) => AT + pointer);
  if (preset === undefined && source !== null && 'model' in source)
    return readConfig(source.model.config, () => '/model/init_from/model');
  // One of them is required; the preset stands in so that the other rules can still be checked.
  return { config: presets[preset ?? 'llama-tiny'], errors: [] };
}

function readConfig(
  document: Readonly<Record<string, unknown>>,
  pointerTo: (pointer: string) => string,
): ReadConfig {
  const { config, errors } = importConfig(document);
  return { config, errors: errors.map((error) => ({ ...error, pointer: pointerTo(error.pointer) })) };
}

/** Checks the requirements of the document on the model. */
export function checkModel({ model, train }: ResolvedJobSpec): FieldError[] {
  const { max_position_embeddings } = architectureOf(model.config);
  if (train.sequence_length <= max_position_embeddings) return [];
  return [
    fieldError(
      '/train/sequence_length',
      'sequence_longer_than_model',
      `sequence_length ${train.sequence_length} is greater than the ${max_position_embeddings} positions of the model`,
      String(max_position_embeddings),
    ),
  ];
}
