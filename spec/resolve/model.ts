import type { FieldError, JobSpec, ResolvedJobSpec, ResolvedModelConfig } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';
import { architectureOf } from '../model/families/families.js';
import { importConfig } from '../model/import.js';
import { presets } from '../presets.js';
import type { InitSource } from './init-from.js';

const AT = '/model/config';

export interface ReadConfig {
  /** Null when it could not be read. */
  config: ResolvedModelConfig | null;
  /** What is wrong with the configuration itself. */
  errors: FieldError[];
}

/** @param source what `init_from` names; the configuration of a model is taken where the document gives none */
export function resolveConfig(
  { config, preset }: JobSpec['model'],
  source: InitSource | null = null,
): ReadConfig {
  if (config !== undefined) return readConfig(config, (pointer) => AT + pointer);
  if (preset === undefined && source !== null && 'model' in source)
    return readConfig(source.model.config, () => '/model/init_from/model');
  // One of them has to be there; the preset stands in so that the other rules can still be checked.
  return { config: presets[preset ?? 'llama-tiny'], errors: [] };
}

function readConfig(
  document: Readonly<Record<string, unknown>>,
  place: (pointer: string) => string,
): ReadConfig {
  const { config, errors } = importConfig(document);
  return { config, errors: errors.map((error) => ({ ...error, pointer: place(error.pointer) })) };
}

/** What the rest of the document asks of the model. */
export function checkModel({ model, train }: ResolvedJobSpec): FieldError[] {
  const { max_position_embeddings } = architectureOf(model.config);
  if (train.sequence_length <= max_position_embeddings) return [];
  return [
    fieldError(
      '/train/sequence_length',
      'sequence_longer_than_model',
      `sequence_length ${train.sequence_length} is more than the ${max_position_embeddings} positions of the model`,
      String(max_position_embeddings),
    ),
  ];
}
