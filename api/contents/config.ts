import { type FieldError, ZerofleetError } from '../../contracts/index.js';
import { architectureOf, importConfig, type ModelParam, modelParams } from '../../spec/index.js';

/** What a `config.json` says about the weights. */
export interface ModelShape {
  model_type: string;
  /** In canonical order; the input embedding is the first. */
  params: readonly ModelParam[];
  /** Whether the input embedding is the output projection, too. */
  tied: boolean;
}

/** @throws ZerofleetError `model_config_invalid` naming every bad field */
export function shapeOf(config: Record<string, unknown>): ModelShape {
  const { config: imported, errors } = importConfig(config);
  if (imported === null || errors.length > 0) throw refusal(errors);
  const architecture = architectureOf(imported);
  return {
    model_type: imported.model_type,
    params: modelParams(architecture),
    tied: architecture.tie_word_embeddings,
  };
}

function refusal(fields: FieldError[]): ZerofleetError {
  const list = fields.map(({ pointer, message }) => `${pointer}: ${message}`).join('; ');
  return new ZerofleetError('model_config_invalid', `config.json: ${list.slice(0, 1000)}`, { fields });
}
