/** Jobs with several ZeRO features each, so that every feature is in one of them. */
import type { JobSpec } from '../../contracts/index.js';

type Train = NonNullable<JobSpec['train']>;
type Sections = { train?: Partial<Train>; zero?: JobSpec['zero'] };

export const STEPS = 40;
/** This scale makes gradients exceed the fp16 range, so that the first steps are skipped. */
const HUGE_SCALE = 2 ** 24;

interface TinyJobOptions extends Sections {
  name: string;
  dataset: string;
  ranks?: number;
  steps?: number;
  init_from?: NonNullable<JobSpec['model']>['init_from'];
}

/** Two narrow layers whose parameters end inside blocks, and six leaves: only 1, 2 and 3 ranks share them evenly. */
export function tinyJob({
  name,
  dataset,
  ranks = 1,
  steps = STEPS,
  init_from,
  ...given
}: TinyJobOptions): JobSpec {
  return {
    name,
    model: {
      config: {
        model_type: 'llama',
        hidden_size: 72,
        intermediate_size: 100,
        num_hidden_layers: 2,
        num_attention_heads: 6,
        num_key_value_heads: 2,
        vocab_size: 256,
      },
      ...(init_from && { init_from }),
    },
    data: { dataset, seed: 3 },
    train: {
      steps,
      sequence_length: 32,
      global_batch_size: 12,
      micro_batch_size: 2,
      seed: 5,
      ...given.train,
    },
    zero: { bucket_bytes: 16_384 * 4, ...given.zero },
    resources: { ranks: { min: 1, max: 4, preferred: ranks } },
    checkpoint: { every_steps: 1000, keep: { last: 2 } },
  };
}

/** Settings besides the defaults, by name. */
export const FEATURES: Record<string, Sections> = {
  'adam, stage 1 with lanes, warm-up, stable, decay': {
    train: {
      optimizer: { type: 'adam', lr: 2e-3, weight_decay: 0.01 },
      lr_schedule: {
        type: 'wsd',
        warmup_steps: 4,
        warmup_type: 'log',
        warmup_start_lr: 1e-5,
        decay_steps: 10,
        min_lr: 1e-4,
      },
    },
    zero: { stage: 1, lanes: 4, reduce_dtype: 'fp32' },
  },
  'lamb, an average, fp16 with a dynamic loss scale, groups of parameters, max norm': {
    train: {
      ema: { decay: 0.9 },
      precision: 'fp16',
      loss_scale: { type: 'dynamic', initial_scale: HUGE_SCALE, hysteresis: 2, window: 6 },
      gradient_clipping: 0.01,
      gradient_clipping_norm: 'max',
      optimizer: {
        type: 'lamb',
        lr: 5e-3,
        param_groups: [
          { match: 'model.embed_tokens.weight', frozen: true },
          { match: '*.mlp.*', lr: 1e-3, weight_decay: 0.2 },
        ],
      },
    },
  },
  'adapters with dropout and an average over a frozen base, in fp16': {
    train: {
      ema: { decay: 0.9 },
      precision: 'fp16',
      optimizer: { lr: 5e-3, param_groups: [{ match: '*.lora_B.*', lr: 2e-2 }] },
      adapter: {
        rank: 6,
        dropout: 0.1,
        target_modules: ['q_proj', 'v_proj', 'down_proj'],
        modules_to_save: ['lm_head'],
      },
    },
  },
  'lion, sums in bf16, predivided, with overrides of the rate': {
    train: {
      optimizer: { type: 'lion', lr: 3e-4 },
      overrides: [
        { step: 1, lr: 1e-3 },
        { step: 30, lr: null },
      ],
    },
    zero: { grad_accum_dtype: 'bf16', gradient_predivide_factor: 4 },
  },
  'adagrad, fp16 with an overridden loss scale, stage 1 with as many lanes as leaves': {
    train: {
      precision: 'fp16',
      loss_scale: { type: 'dynamic', initial_scale: 1024, hysteresis: 1, window: 8 },
      optimizer: { type: 'adagrad', lr: 1e-2, initial_accumulator_value: 0.01 },
      overrides: [
        { step: 2, loss_scale: 256 },
        { step: 25, loss_scale: null },
      ],
    },
    zero: { stage: 1, lanes: 6, grad_accum_dtype: 'fp16' },
  },
  'sgd with momentum and an average, fp16 masters in host memory, a static loss scale, frozen layers': {
    train: {
      ema: { decay: 0.9 },
      precision: 'fp16',
      loss_scale: { type: 'static', initial_scale: 512 },
      optimizer: {
        type: 'sgd',
        lr: 0.05,
        nesterov: true,
        param_groups: [{ match: 'model.layers.0.*', frozen: true }],
      },
      lr_schedule: { type: 'linear', warmup_steps: 2 },
    },
    zero: { offload: 'cpu', master_dtype: 'fp16', reduce_dtype: 'fp16' },
  },
};

/** A loss scale at which no step has finite gradients, and which is never lowered. */
export const DIVERGING: Sections = {
  train: {
    precision: 'fp16',
    loss_scale: { type: 'static', initial_scale: HUGE_SCALE, max_skipped_steps: 3 },
  },
};
