import type { FieldError, ResolvedModelConfig } from '../index.js';
import { fieldError } from '../resolve-spec/field-error.js';

/** Token files have 16 bits for each token. */
const MAX_VOCAB = 65_536;

/** What a configuration may say and the native core does not compute yet: refused by name, so that nothing is ignored. */
export function checkCore(config: ResolvedModelConfig): FieldError[] {
  const refuse = (name: string, what: string) =>
    fieldError(`/${name}`, 'model_field_unsupported', `${name}: ${what} not trained yet`);
  if (config.model_type === 'mixtral') return [refuse('model_type', 'mixtures of experts are')];
  return config.vocab_size > MAX_VOCAB
    ? [refuse('vocab_size', `a vocabulary of more than ${MAX_VOCAB} tokens is`)]
    : [];
}
