import type { FieldError, ResolvedModelConfig } from '../index.js';
import { fieldError } from '../resolve-spec/field-error.js';

/** What a configuration may say and the native core does not compute yet: refused by name, so that nothing is ignored. */
export function checkCore({ model_type }: ResolvedModelConfig): FieldError[] {
  if (model_type !== 'mixtral') return [];
  return [fieldError('/model_type', 'model_field_unsupported', 'mixtures of experts are not trained yet')];
}
