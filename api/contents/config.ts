import { type FieldError, type ResolvedModelConfig, ZerofleetError } from '../../contracts/index.js';
import {
  architectureOf,
  importConfig,
  type ModelParam,
  modelParams,
  tiedHead,
} from '../../job-document/index.js';

/** Model shape from a `config.json`. */
export interface ModelShape {
  model_type: string;
  /** In canonical order, input embedding first. */
  params: readonly ModelParam[];
  /** Weight of the output projection if the input embedding is in its place; otherwise null. */
  tied: string | null;
}

/** @throws ZerofleetError `model_config_invalid` naming every bad field */
export function importedConfig(config: Record<string, unknown>): ResolvedModelConfig {
  const { config: imported, errors } = importConfig(config);
  if (imported === null || errors.length > 0) throw refusal(errors);
  return imported;
}

/** @throws as `importedConfig` */
export function shapeOf(config: Record<string, unknown>): ModelShape {
  const imported = importedConfig(config);
  const architecture = architectureOf(imported);
  return {
    model_type: imported.model_type,
    params: modelParams(architecture),
    tied: tiedHead(architecture),
  };
}

function refusal(fields: FieldError[]): ZerofleetError {
  const list = fields.map(({ pointer, message }) => `${pointer}: ${message}`).join('; ');
  return new ZerofleetError('model_config_invalid', `config.json: ${list.slice(0, 1000)}`, { fields });
}
