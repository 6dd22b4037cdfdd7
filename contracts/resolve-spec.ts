import type { FieldErrorCode } from './errors.js';
import type {
  Dataset,
  FieldError,
  JobSpec,
  LlamaConfig,
  ResolvedJobSpec,
  ResolvedLlamaConfig,
} from './index.js';
import { presets } from './presets.js';

/** Tokens that the `bytes` tokenizer makes. */
const BYTES_VOCAB_SIZE = 256;

/** The shortest `train.sequence_length` that the schema accepts. */
const MIN_SEQUENCE_LENGTH = 8;

export interface ResolvedSpec {
  spec: ResolvedJobSpec;
  /** Every broken rule; when it is empty, `spec` can be trained. */
  errors: FieldError[];
}

/**
 * Fills every default of a job document and checks the rules that hold between its fields.
 *
 * @param spec a document that the schema `JobSpec` accepts
 * @param dataset the dataset that it names, or null to skip the rules about the data
 */
export function resolveSpec(spec: JobSpec, dataset: Dataset | null): ResolvedSpec {
  const resolved = fillDefaults(spec);
  const errors = [
    ...checkModel(resolved, spec.model.config?.head_dim !== undefined),
    ...checkTraining(resolved),
    ...checkRanks(resolved),
    ...(dataset === null ? [] : checkData(resolved, dataset)),
  ];
  return { spec: resolved, errors };
}

/** Leaves of one step: micro-batches of the global batch, and the most ranks that a job can use. */
export function leafCount(train: { global_batch_size: number; micro_batch_size: number }): number {
  return Math.floor(train.global_batch_size / train.micro_batch_size);
}

function fillDefaults(spec: JobSpec): ResolvedJobSpec {
  const precision = spec.train.precision ?? 'bf16';
  const preferred = spec.resources?.ranks?.preferred ?? Math.max(1, spec.resources?.ranks?.min ?? 1);
  return {
    name: spec.name ?? '',
    labels: spec.labels ?? {},
    model: { config: resolveConfig(spec), preset: spec.model.preset ?? null },
    data: { tokenizer: 'bytes', seed: 1, ...spec.data },
    train: {
      sequence_length: 128,
      global_batch_size: 16,
      micro_batch_size: 4,
      seed: 1,
      gradient_clipping: 1,
      ...spec.train,
      precision,
      optimizer: {
        type: 'adamw',
        lr: 1e-3,
        betas: [0.9, 0.95],
        eps: 1e-8,
        weight_decay: 0.1,
        ...spec.train.optimizer,
      },
      lr_schedule: { type: 'cosine', warmup_steps: 0, min_lr: 0, ...spec.train.lr_schedule },
    },
    zero: { stage: 2, bucket_bytes: 4_194_304, reduce_dtype: precision, ...spec.zero },
    resources: {
      pool: spec.resources?.pool ?? 'default',
      ranks: { min: 1, max: preferred, ...spec.resources?.ranks, preferred },
    },
    checkpoint: { every_steps: 100, keep_last: 3, ...spec.checkpoint },
    retry: { max_errors: 3, ...spec.retry },
    export: { format: 'safetensors', dtype: 'bf16', ...spec.export },
  };
}

function resolveConfig(spec: JobSpec): ResolvedLlamaConfig {
  // The schema asks for exactly one of the two; the preset stands in so that the other rules can still be checked.
  const config: LlamaConfig = spec.model.config ?? presets[spec.model.preset ?? 'llama-tiny'];
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

function fieldError(pointer: string, code: FieldErrorCode, message: string, suggestion?: string): FieldError {
  return { pointer, code, message, ...(suggestion === undefined ? {} : { suggestion }) };
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

function checkModel(spec: ResolvedJobSpec, headDimIsGiven: boolean): FieldError[] {
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

function checkTraining({ train }: ResolvedJobSpec): FieldError[] {
  const {
    steps,
    global_batch_size: global,
    micro_batch_size: micro,
    optimizer,
    lr_schedule: schedule,
  } = train;
  const errors: FieldError[] = [];
  if (global % micro !== 0) {
    errors.push(
      fieldError(
        '/train/micro_batch_size',
        'micro_batch_not_divisor',
        `micro_batch_size ${micro} does not divide global_batch_size ${global}`,
        String(largestDivisor(global, micro)),
      ),
    );
  }
  if (schedule.warmup_steps > steps) {
    errors.push(
      fieldError(
        '/train/lr_schedule/warmup_steps',
        'warmup_longer_than_training',
        `warmup_steps ${schedule.warmup_steps} is more than steps ${steps}`,
        String(steps),
      ),
    );
  }
  if (schedule.min_lr > optimizer.lr) {
    errors.push(
      fieldError(
        '/train/lr_schedule/min_lr',
        'min_lr_above_lr',
        `min_lr ${schedule.min_lr} is more than the peak rate ${optimizer.lr}`,
      ),
    );
  }
  return errors;
}

function checkRanks({ resources: { ranks }, train }: ResolvedJobSpec): FieldError[] {
  const errors: FieldError[] = [];
  const leaves = leafCount(train);
  // A micro-batch that does not divide is reported on its own; its number of leaves would only mislead.
  if (train.global_batch_size % train.micro_batch_size === 0) {
    for (const name of ['max', 'preferred', 'min'] as const) {
      if (ranks[name] <= leaves) continue;
      errors.push(
        fieldError(
          `/resources/ranks/${name}`,
          'too_many_ranks',
          `${ranks[name]} ranks, but only ${leaves} leaves (global_batch_size / micro_batch_size)`,
          String(leaves),
        ),
      );
    }
  }
  if (ranks.min > ranks.preferred || ranks.preferred > ranks.max) {
    errors.push(
      fieldError(
        '/resources/ranks',
        'ranks_out_of_order',
        `min ≤ preferred ≤ max does not hold for ${ranks.min}, ${ranks.preferred}, ${ranks.max}`,
      ),
    );
  }
  return errors;
}

function checkData({ train }: ResolvedJobSpec, dataset: Dataset): FieldError[] {
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

function largestDivisor(of: number, atMost: number): number {
  for (let divisor = Math.min(of, atMost); divisor > 1; divisor -= 1) {
    if (of % divisor === 0) return divisor;
  }
  return 1;
}

function nearestMultiple(value: number, of: number): number {
  return Math.max(of, Math.round(value / of) * of);
}
