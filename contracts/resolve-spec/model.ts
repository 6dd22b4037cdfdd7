import type {
  Dataset,
  FieldError,
  JobSpec,
  LlamaConfig,
  ResolvedJobSpec,
  ResolvedLlamaConfig,
} from '../index.js';
import { presets } from '../presets.js';
import { fieldError } from './field-error.js';
import { largestDivisor } from './leaves.js';

/** Tokens that the `bytes` tokenizer makes. */
const BYTES_VOCAB_SIZE = 256;

/** The shortest `train.sequence_length` that the schema accepts. */
const MIN_SEQUENCE_LENGTH = 8;

export function resolveConfig(model: JobSpec['model']): ResolvedLlamaConfig {
  // The schema asks for exactly one of the two; the preset stands in so that the other rules can still be checked.
  const config: LlamaConfig = model.config ?? presets[model.preset ?? 'llama-tiny'];
  return {
    num_key_value_heads: config.num_attention_heads,
    head_dim: Math.floor(config.hidden_size / config.num_attention_heads),
    max_position_embeddings: 2048,
    rms_norm_eps: 1e-6,
    rope_theta: 10_000,
    tie_word_embeddings: false,
    initializer_range: 0.02,
    hidden_act: 'silu',
    ...config,
  };
}

/** Where a field of the configuration stands in the document; a preset's fields all stand behind its name. */
function configField({ model }: ResolvedJobSpec, name: keyof LlamaConfig): string {
  return model.preset === null ? `/model/config/${name}` : '/model/preset';
}

/** The widths that the native core can multiply. */
function checkWidths(spec: ResolvedJobSpec, headDimIsGiven: boolean): FieldError[] {
  const { config } = spec.model;
  const field = (name: keyof LlamaConfig) => configField(spec, name);
  const errors: FieldError[] = [];
  if (!headDimIsGiven && config.hidden_size % config.num_attention_heads !== 0) {
    errors.push(
      fieldError(
        field('hidden_size'),
        'hidden_size_not_divisible',
        `hidden_size ${config.hidden_size} is no multiple of num_attention_heads ${config.num_attention_heads}`,
        // Twice the heads: the width of a head has to be even, too.
        String(nearestMultiple(config.hidden_size, 2 * config.num_attention_heads)),
      ),
    );
  } else if (config.head_dim % 2 !== 0) {
    errors.push(
      fieldError(
        field('head_dim'),
        'head_dim_odd',
        `head_dim ${config.head_dim} is odd; rotary positions turn pairs of elements`,
        String(config.head_dim + 1),
      ),
    );
  }
  if (config.intermediate_size % 2 !== 0) {
    errors.push(
      fieldError(
        field('intermediate_size'),
        'intermediate_size_odd',
        `intermediate_size ${config.intermediate_size} is odd; it must be even`,
        String(config.intermediate_size + 1),
      ),
    );
  }
  if (config.num_attention_heads % config.num_key_value_heads !== 0) {
    errors.push(
      fieldError(
        field('num_key_value_heads'),
        'heads_not_divisible',
        `num_attention_heads ${config.num_attention_heads} is no multiple of num_key_value_heads ` +
          `${config.num_key_value_heads}`,
        String(largestDivisor(config.num_attention_heads, config.num_key_value_heads)),
      ),
    );
  }
  return errors;
}

export function checkModel(spec: ResolvedJobSpec, headDimIsGiven: boolean): FieldError[] {
  const { model, data, train } = spec;
  const { config } = model;
  const errors = checkWidths(spec, headDimIsGiven);
  if (data.tokenizer === 'bytes' && config.vocab_size < BYTES_VOCAB_SIZE) {
    errors.push(
      fieldError(
        configField(spec, 'vocab_size'),
        'vocab_too_small',
        `the bytes tokenizer makes ${BYTES_VOCAB_SIZE} tokens, vocab_size is ${config.vocab_size}`,
        String(BYTES_VOCAB_SIZE),
      ),
    );
  }
  if (train.sequence_length > config.max_position_embeddings) {
    errors.push(
      fieldError(
        '/train/sequence_length',
        'sequence_longer_than_model',
        `sequence_length ${train.sequence_length} is more than max_position_embeddings ` +
          `${config.max_position_embeddings}`,
        String(config.max_position_embeddings),
      ),
    );
  }
  return errors;
}

export function checkData({ train }: ResolvedJobSpec, dataset: Dataset): FieldError[] {
  // A sample is sequence_length inputs and, shifted by one, as many targets.
  if (dataset.num_tokens >= train.sequence_length + 1) return [];
  return [
    fieldError(
      '/train/sequence_length',
      'sequence_longer_than_data',
      `a sequence of ${train.sequence_length} needs ${train.sequence_length + 1} tokens, ` +
        `dataset ${dataset.id} has ${dataset.num_tokens}`,
      dataset.num_tokens > MIN_SEQUENCE_LENGTH ? String(dataset.num_tokens - 1) : undefined,
    ),
  ];
}

function nearestMultiple(value: number, of: number): number {
  return Math.max(of, Math.round(value / of) * of);
}
