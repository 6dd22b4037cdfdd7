import type { FieldError, JobSpec, ResolvedJobSpec, ResolvedModelConfig } from '../index.js';
import { checkCore } from '../model/core-support.js';
import { architectureOf, importConfig } from '../model/index.js';
import { presets } from '../presets.js';
import { fieldError } from './field-error.js';

/** Tokens that the `bytes` tokenizer makes. */
const BYTES_VOCAB_SIZE = 256;

const AT = '/model/config';

export interface ReadConfig {
  /** Null when it could not be read. */
  config: ResolvedModelConfig | null;
  /** What is wrong with the configuration itself. */
  errors: FieldError[];
}

export function resolveConfig({ config, preset }: JobSpec['model']): ReadConfig {
  // The schema asks for exactly one of the two; the preset stands in so that the other rules can still be checked.
  if (config === undefined) return { config: presets[preset ?? 'llama-tiny'], errors: [] };
  const imported = importConfig(config);
  const errors = [...imported.errors, ...(imported.config === null ? [] : checkCore(imported.config))];
  return {
    config: imported.config,
    errors: errors.map((error) => ({ ...error, pointer: AT + error.pointer })),
  };
}

/** What the rest of the document asks of the model. */
export function checkModel({ model, data, train }: ResolvedJobSpec): FieldError[] {
  const { vocab_size, max_position_embeddings } = architectureOf(model.config);
  const errors: FieldError[] = [];
  if (data.tokenizer === 'bytes' && vocab_size < BYTES_VOCAB_SIZE) {
    errors.push(
      fieldError(
        model.preset === null ? `${AT}/vocab_size` : '/model/preset',
        'vocab_too_small',
        `the bytes tokenizer makes ${BYTES_VOCAB_SIZE} tokens, vocab_size is ${vocab_size}`,
        String(BYTES_VOCAB_SIZE),
      ),
    );
  }
  if (train.sequence_length > max_position_embeddings) {
    errors.push(
      fieldError(
        '/train/sequence_length',
        'sequence_longer_than_model',
        `sequence_length ${train.sequence_length} is more than the ${max_position_embeddings} positions of the model`,
        String(max_position_embeddings),
      ),
    );
  }
  return errors;
}
