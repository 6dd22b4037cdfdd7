/** Settings of trainings, and another value of each field. */
import { DEFAULTS_BY_TYPE } from '../../../contracts/generated/job-defaults.js';
import { plainSettings, type TrainerConfig } from '../index.js';
import { tinyConfig, tinyTokens } from '../testing.js';

export const tokens = tinyTokens();
export const tiny: TrainerConfig = {
  ...tinyConfig(tokens.path),
  global_batch_size: 6,
  micro_batch_size: 1,
  steps: 4,
};
tiny.lr_schedule.warmup_steps = 2;

const fp16 = {
  precision: 'fp16',
  loss_scale: plainSettings('fp16').loss_scale,
  'zero.reduce_dtype': 'fp16',
};
const overflows = {
  ...fp16,
  loss_scale: { ...fp16.loss_scale, initial_scale: 2 ** 40, hysteresis: 1 },
};
const experts = {
  'model.naming': 'mixtral',
  'model.num_experts': 4,
  'model.experts_per_token': 2,
  'model.router_aux_loss_coef': 0.1,
};
const neox = {
  'model.naming': 'gpt_neox',
  'model.norm': 'layer',
  'model.mlp': 'gelu',
  'model.num_key_value_heads': tiny.model.num_attention_heads,
};
const scaling = tiny.model.rope_scaling;
const llama3 = {
  'model.rope_scaling': { ...scaling, type: 'llama3', factor: 4, original_max_position_embeddings: 16 },
};
const yarn = {
  'model.rope_scaling': {
    ...scaling,
    type: 'yarn',
    factor: 4,
    original_max_position_embeddings: 512,
    beta_fast: 3,
    beta_slow: 0.3,
  },
};
const longrope = (original: number) => ({
  'model.rope_scaling': {
    ...scaling,
    type: 'longrope',
    factor: 4,
    original_max_position_embeddings: original,
    short_factor: Array<number>(6).fill(1),
    long_factor: Array<number>(6).fill(2),
  },
});
const dpo = {
  type: 'dpo',
  beta: 0.1,
  label_smoothing: 0,
  gamma: 0,
  desirable_weight: 1,
  undesirable_weight: 1,
  reference: 'initial',
};
const adapter = {
  type: 'lora',
  rank: 2,
  scale: 2,
  dropout: 0.1,
  init: 'gaussian',
  target_modules: ['q_proj', 'down_proj'],
  modules_to_save: ['lm_head'],
};
const group = { match: 'model.layers.0.*', lr_scale: 0.5, weight_decay: 0.2, frozen: false };
const optimizer = (type: string) => ({ 'optimizer.type': type });

/** Other values, by the other settings. */
export const CASES: [Record<string, unknown>, Record<string, unknown>][] = [
  [
    {},
    {
      'model.naming': 'gpt2',
      'model.hidden_size': 60,
      'model.intermediate_size': 96,
      'model.num_hidden_layers': 1,
      'model.num_attention_heads': 2,
      'model.num_key_value_heads': 4,
      'model.head_dim': 8,
      'model.vocab_size': 103,
      'model.max_position_embeddings': 16,
      'model.norm': 'layer',
      'model.norm_eps': 0.1,
      'model.norm_offset': 1,
      'model.positions': 'learned',
      'model.rope_theta': 100,
      'model.rope_scaling.type': 'yarn',
      'model.layer_rope': [1, 0],
      'model.rotary_dim': 8,
      'model.rope_interleaved': true,
      'model.qkv_bias': true,
      'model.output_bias': true,
      'model.mlp_bias': true,
      'model.qk_norm': true,
      'model.attention_scale': 0.5,
      'model.attention_soft_cap': 0.5,
      'model.layer_windows': [3, 0],
      'model.mlp': 'gelu',
      'model.tie_word_embeddings': true,
      'model.embedding_scale': 2,
      'model.residual_scale': 0.5,
      'model.logits_scale': 0.5,
      'model.logits_soft_cap': 0.5,
      'model.embedding_dropout': 0.2,
      'model.attention_dropout': 0.2,
      'model.residual_dropout': 0.2,
      'model.initializer_range': 0.03,
      'model.residual_initializer_range': 0.03,
      'model.adapter': adapter,
      preference: dpo,
      session: true,
      training_files: [1, 2].map((weight) => ({ path: tokens.path, weight })),
      precision: 'fp32',
      sequence_length: 16,
      global_batch_size: 5,
      micro_batch_size: 2,
      steps: 5,
      seed: 2,
      data_seed: 2,
      'optimizer.type': 'adam',
      'optimizer.lr': 0.02,
      'optimizer.beta1': 0.8,
      'optimizer.beta2': 0.8,
      'optimizer.eps': 0.01,
      'optimizer.weight_decay': 0.5,
      param_groups: [group],
      'lr_schedule.type': 'linear',
      'lr_schedule.warmup_steps': 1,
      'lr_schedule.warmup_type': 'log',
      'lr_schedule.warmup_start_lr': 0.005,
      'lr_schedule.min_lr': 0.001,
      gradient_clipping: 0.1,
      gradient_clipping_norm: 'max',
      'loss_scale.type': 'static',
      overrides: [{ step: 1, lr: 0.5 }],
      'zero.stage': 1,
      'zero.lane_group': 2,
      'zero.reduce_dtype': 'fp32',
      'zero.grad_accum_dtype': 'fp16',
      'zero.expert_parallel_size': 2,
    },
  ],
  [
    { training_files: [1, 2].map((weight) => ({ path: tokens.path, weight })) },
    { 'training_files.1.weight': 3 },
  ],
  [
    { preference: dpo },
    { 'preference.type': 'ipo', 'preference.beta': 0.3, 'preference.label_smoothing': 0.2 },
  ],
  [{ preference: { ...dpo, type: 'simpo', reference: undefined } }, { 'preference.gamma': 0.5 }],
  [
    { preference: { ...dpo, type: 'kto' } },
    {
      'preference.desirable_weight': 1.5,
      'preference.undesirable_weight': -1,
      'preference.reference': 'base',
    },
  ],
  [{ 'model.layer_rope': [2, 1] }, { 'model.local_rope_theta': 100 }],
  [{ 'model.qk_norm': true }, { 'model.qk_norm_scope': 'all' }],
  [neox, { 'model.qkv_by_head': true, 'model.parallel_residual': true }],
  [{ precision: 'bf16', 'model.embedding_scale': 1.1 }, { 'model.rounds_embedding_scale': true }],
  [experts, { 'model.num_experts': 8, 'model.experts_per_token': 1, 'model.router_aux_loss_coef': 0.5 }],
  [
    { ...experts, 'model.naming': 'qwen2_moe', 'model.shared_expert_size': 8 },
    { 'model.norm_topk_prob': false, 'model.shared_expert_size': 12 },
  ],
  [{ 'model.rope_scaling.type': 'linear' }, { 'model.rope_scaling.factor': 4 }],
  [
    llama3,
    {
      'model.rope_scaling.low_freq_factor': 2,
      'model.rope_scaling.high_freq_factor': 8,
      'model.rope_scaling.original_max_position_embeddings': 64,
    },
  ],
  [
    yarn,
    {
      'model.rope_scaling.beta_fast': 6,
      'model.rope_scaling.beta_slow': 0.1,
      'model.rope_scaling.attention_factor': 1.5,
      'model.rope_scaling.truncate': false,
    },
  ],
  [
    { ...yarn, 'model.rope_scaling.mscale': 1, 'model.rope_scaling.mscale_all_dim': 1 },
    { 'model.rope_scaling.mscale': 2, 'model.rope_scaling.mscale_all_dim': 0.5 },
  ],
  [longrope(512), { 'model.rope_scaling.short_factor': [1, 2, 3, 4, 5, 6] }],
  [longrope(16), { 'model.rope_scaling.long_factor': [1, 2, 3, 4, 5, 6] }],
  [{ 'lr_schedule.type': 'wsd', 'lr_schedule.decay_steps': 2 }, { 'lr_schedule.decay_steps': 1 }],
  [{ ema: { decay: 0.5 } }, { 'ema.decay': 0.75 }],
  [optimizer('sgd'), { 'optimizer.momentum': 0.5, 'optimizer.dampening': 0.5, 'optimizer.nesterov': true }],
  [optimizer('adagrad'), { 'optimizer.lr_decay': 0.5, 'optimizer.initial_accumulator_value': 0.1 }],
  [
    { ...optimizer('lamb'), 'optimizer.min_coeff': 0.1, 'optimizer.max_coeff': 0.2 },
    {
      'optimizer.min_coeff': 0.15,
      'optimizer.max_coeff': 0.12,
      'optimizer.bias_correction': 'step_size',
    },
  ],
  [
    { param_groups: [group] },
    {
      'param_groups.0.match': 'model.layers.1.*',
      'param_groups.0.lr_scale': 2,
      'param_groups.0.weight_decay': null,
      'param_groups.0.frozen': true,
    },
  ],
  [{ 'zero.stage': 1, 'zero.lanes': 2 }, { 'zero.lanes': 3 }],
  [
    fp16,
    {
      'loss_scale.initial_scale': 128,
      'loss_scale.window': 1,
      'zero.master_dtype': 'fp16',
      'zero.gradient_predivide_factor': 3,
      overrides: [{ step: 1, loss_scale: 32 }],
    },
  ],
  [
    { 'model.adapter': adapter },
    {
      'model.adapter.rank': 3,
      'model.adapter.scale': 1,
      'model.adapter.dropout': 0,
      'model.adapter.init': 'kaiming_uniform',
      'model.adapter.target_modules': ['q_proj'],
      'model.adapter.modules_to_save': [],
      'model.quantization': 'nf4',
    },
  ],
  [{ 'model.adapter': { ...adapter, dropout: 0 } }, { 'model.adapter.type': 'dora' }],
  [
    overflows,
    { 'loss_scale.hysteresis': 2, 'loss_scale.min_scale': 2 ** 39, 'loss_scale.max_skipped_steps': 2 },
  ],
];

/** Fields that change no bit of a training on one CPU rank, and the one that trainer-features.test.ts tests. */
export const OTHERS = [
  'device',
  'reserved_bytes',
  'activation_checkpointing',
  // The loop of a rank reads it.
  'max_skipped_share',
  'rank',
  'world_size',
  'threads',
  'evaluation_files',
  'comm.backend',
  'comm.bind_address',
  'comm.timeout_ms',
  'zero.bucket_bytes',
  'zero.offload',
  'loss_scale.consecutive_hysteresis',
];

/** With the objective grpo the core reads calls. */
const { grpo: _, ...PREFERENCES } = DEFAULTS_BY_TYPE.ObjectiveSpec;
/** Fields that some types have, as the job document names them; the core reads `betas` as two fields. */
export const FIELDS_OF_TYPES = Object.entries({
  optimizer: DEFAULTS_BY_TYPE.OptimizerSpec,
  loss_scale: DEFAULTS_BY_TYPE.LossScaleSpec,
  preference: PREFERENCES,
}).flatMap(([section, types]) =>
  Object.values(types)
    .flatMap((fields) => Object.keys(fields))
    .filter((name) => name !== 'betas')
    .map((name) => `${section}.${name}`),
);
