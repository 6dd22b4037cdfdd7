import type { FieldError, ResolvedModelConfig } from '../index.js';
import { fieldError } from '../resolve-spec/field-error.js';

/** Token files have 16 bits for each token. */
const MAX_VOCAB = 65_536;

/** What a configuration may say and the native core does not compute yet: refused by name, so that nothing is ignored. */
export function checkCore(config: ResolvedModelConfig): FieldError[] {
  const refuse = (name: string, is: string) =>
    fieldError(`/${name}`, 'model_field_unsupported', `${name}: ${is} not trained yet`);
  if (config.model_type !== 'llama')
    return [
      fieldError(
        '/model_type',
        'model_field_unsupported',
        `${config.model_type} is not trained yet`,
        'llama',
      ),
    ];
  const errors: FieldError[] = [];
  if (config.attention_bias) errors.push(refuse('attention_bias', 'biases in attention are'));
  if (config.mlp_bias) errors.push(refuse('mlp_bias', 'biases in the MLP are'));
  if (config.attention_dropout > 0) errors.push(refuse('attention_dropout', 'dropout is'));
  if (config.rope_scaling !== null) errors.push(refuse('rope_scaling', 'scaled rotary positions are'));
  if (config.vocab_size > MAX_VOCAB)
    errors.push(refuse('vocab_size', `a vocabulary of more than ${MAX_VOCAB} tokens is`));
  return errors;
}
