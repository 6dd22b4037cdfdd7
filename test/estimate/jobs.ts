import type { JobSpec } from '../../contracts/index.js';
import { MODEL_TYPES } from '../../job-document/index.js';
import { firstModel } from '../support/families.js';

export const MODEL = {
  model_type: 'llama',
  hidden_size: 96,
  intermediate_size: 224,
  num_hidden_layers: 3,
  num_attention_heads: 6,
  num_key_value_heads: 2,
  vocab_size: 301,
} as const;

const { model_type: _, ...SIZES } = MODEL;

export { SIZES };
export const GPT2 = {
  model_type: 'gpt2',
  vocab_size: 301,
  n_positions: 64,
  n_embd: 96,
  n_layer: 3,
  n_head: 6,
} as const;

/** A job of each family, and one with a quantized base. */
const FAMILIES = MODEL_TYPES.flatMap((type) => {
  const config = firstModel(type, { ...SIZES, num_attention_heads: 12 });
  return [
    [type, { model: { config } }],
    [`LoRA over ${type} in NF4`, { model: { config, quantization: 'nf4' }, train: { adapter: { rank: 4 } } }],
  ];
});

/** Jobs that differ in everything that affects memory. Each has at least three buckets. */
export const JOBS: Record<string, Partial<JobSpec> & { threads?: number }> = {
  'AdamW in bf16': { train: { sequence_length: 17 } },
  'tied embeddings, two threads': { model: { config: { ...MODEL, tie_word_embeddings: true } }, threads: 2 },
  'AdamW in fp32': { train: { precision: 'fp32', sequence_length: 33 }, zero: { bucket_bytes: 131_072 } },
  'LAMB in fp16, lanes of several leaves, 16-bit sums, frozen parameters': {
    train: {
      precision: 'fp16',
      optimizer: { type: 'lamb', param_groups: [{ match: '*embed_tokens*', frozen: true }] },
    },
    zero: { stage: 1, lanes: 4, grad_accum_dtype: 'bf16' },
  },
  'Lion with an average, lanes of single leaves': {
    train: { optimizer: { type: 'lion' }, ema: {} },
    zero: { stage: 1, lanes: 8 },
  },
  'SGD, fp16 masters': {
    train: { precision: 'fp16', optimizer: { type: 'sgd' } },
    zero: { master_dtype: 'fp16', offload: 'cpu' },
  },
  'DPO with the initial model as the reference': { train: { objective: { type: 'dpo' } }, threads: 2 },
  'KTO with an adapter': {
    train: { objective: { type: 'kto' }, adapter: { rank: 4 }, precision: 'fp32', sequence_length: 33 },
  },
  'GPT-2 with dropout': { model: { config: GPT2 } },
  'GPT-2 in fp32, untied, operands shared by attention and MLP': {
    model: { config: { ...GPT2, n_inner: 288, resid_pdrop: 0, tie_word_embeddings: false } },
    train: { precision: 'fp32' },
  },
  'GPT-2, all but its layers frozen': {
    model: { config: GPT2 },
    train: {
      optimizer: {
        param_groups: ['*.wte.*', '*.wpe.*', '*.ln_f.*'].map((match) => ({ match, frozen: true })),
      },
    },
  },
  'Qwen3, only attention trained, in one layer': {
    model: { config: { ...SIZES, model_type: 'qwen3', head_dim: 32, attention_bias: true } },
    train: {
      optimizer: {
        param_groups: [
          { match: 'model.layers.1.self_attn.*', lr: 1e-3 },
          { match: '*', frozen: true },
        ],
      },
    },
  },
  'the last of five layers trained': {
    model: { config: { ...MODEL, num_hidden_layers: 5 } },
    train: {
      optimizer: {
        param_groups: [
          { match: 'model.layers.4.*', lr: 1e-3 },
          { match: '*', frozen: true },
        ],
      },
    },
  },
  'GPT-2, its last layer and head trained, activation checkpointing': {
    model: { config: { ...GPT2, tie_word_embeddings: false } },
    train: {
      activation_checkpointing: true,
      optimizer: {
        param_groups: [
          { match: 'transformer.h.2.*', lr: 1e-3 },
          { match: 'lm_head.*', lr: 1e-3 },
          { match: '*', frozen: true },
        ],
      },
    },
  },
  'Mixtral, experts frozen': {
    model: { config: { ...SIZES, model_type: 'mixtral', num_local_experts: 3 } },
    train: { optimizer: { param_groups: [{ match: '*.experts.*', frozen: true }] } },
  },
  'Llama in fp16, embedding and head frozen': {
    model: { config: { ...SIZES, model_type: 'llama' } },
    train: {
      precision: 'fp16',
      optimizer: { param_groups: ['*embed_tokens*', 'lm_head*'].map((match) => ({ match, frozen: true })) },
    },
  },
  'LoRA over all matrices of a Llama with biases': {
    model: { config: { ...MODEL, attention_bias: true, mlp_bias: true } },
    train: { adapter: { rank: 8 } },
  },
  'LoRA over attention of a GPT-2 with dropout, norms trained as well, activation checkpointing': {
    model: { config: GPT2 },
    train: {
      activation_checkpointing: true,
      adapter: {
        rank: 5,
        dropout: 0.1,
        target_modules: ['c_attn', 'attn.c_proj'],
        modules_to_save: ['ln_1'],
      },
    },
  },
  'DoRA over matrices of a Llama with biases': {
    model: { config: { ...MODEL, attention_bias: true, mlp_bias: true } },
    train: {
      adapter: { type: 'dora', rank: 8, target_modules: ['q_proj', 'v_proj', 'gate_proj', 'down_proj'] },
    },
  },
  'DoRA over all matrices of a GPT-2, activation checkpointing': {
    model: { config: GPT2 },
    train: { activation_checkpointing: true, adapter: { type: 'dora', rank: 5 } },
  },
  'DoRA over experts and their router': {
    model: { config: { ...SIZES, model_type: 'mixtral', num_local_experts: 4 } },
    train: { adapter: { type: 'dora', rank: 4 } },
  },
  'LoRA whose factors A are frozen': {
    model: { config: MODEL },
    train: { adapter: { rank: 8 }, optimizer: { param_groups: [{ match: '*.lora_A.*', frozen: true }] } },
  },
  'LoRA over experts and their router, embedding trained as well': {
    model: { config: { ...SIZES, model_type: 'mixtral', num_local_experts: 4 } },
    train: { adapter: { rank: 4, target_modules: ['w1', 'w2', 'gate'], modules_to_save: ['embed_tokens'] } },
  },
  'LoRA over experts, spread over two ranks, in fp16': {
    model: { config: { ...SIZES, model_type: 'mixtral', num_local_experts: 4 } },
    train: { precision: 'fp16', adapter: {} },
    zero: { expert_parallel_size: 2 },
  },
  'LoRA over a Llama with biases in NF4': {
    model: { config: { ...MODEL, attention_bias: true, mlp_bias: true }, quantization: 'nf4' },
    train: { adapter: { rank: 8, modules_to_save: ['norm'] } },
  },
  'LoRA over a GPT-2 in int8, activation checkpointing': {
    model: { config: GPT2, quantization: 'int8' },
    train: { activation_checkpointing: true, adapter: { rank: 4 } },
  },
  'LoRA over experts in NF4, spread over two ranks': {
    model: { config: { ...SIZES, model_type: 'mixtral', num_local_experts: 4 }, quantization: 'nf4' },
    train: { adapter: {} },
    zero: { expert_parallel_size: 2 },
  },
  'Qwen3, activation checkpointing': {
    model: { config: { ...SIZES, model_type: 'qwen3', head_dim: 32, attention_bias: true } },
    train: { activation_checkpointing: true },
  },
  'activation checkpointing, rows in parts': {
    train: { activation_checkpointing: true, sequence_length: 1_100 },
  },
  'LoRA with dropout, activation checkpointing, rows in parts': {
    train: { activation_checkpointing: true, sequence_length: 1_100, adapter: { rank: 4, dropout: 0.1 } },
  },
  'Mixtral, activation checkpointing, rows of the router in parts': {
    model: { config: { ...SIZES, model_type: 'mixtral', num_local_experts: 3 } },
    train: { activation_checkpointing: true, sequence_length: 1_100, adapter: { rank: 4 } },
  },
  'Mixtral, activation checkpointing': {
    model: { config: { ...SIZES, model_type: 'mixtral', num_local_experts: 3 } },
    train: { activation_checkpointing: true },
  },
  Mixtral: {
    model: { config: { ...SIZES, model_type: 'mixtral', num_local_experts: 5, num_experts_per_tok: 1 } },
  },
  'Mixtral, experts spread over two ranks': {
    model: { config: { ...SIZES, model_type: 'mixtral', num_local_experts: 4 } },
    train: { optimizer: { param_groups: [{ match: '*.experts.3.w1*', frozen: true }] } },
    zero: { expert_parallel_size: 2 },
  },
  'Mixtral, experts spread over two ranks, lanes of several leaves': {
    model: { config: { ...SIZES, model_type: 'mixtral', num_local_experts: 4 } },
    train: { activation_checkpointing: true },
    zero: { expert_parallel_size: 2, stage: 1, lanes: 6, grad_accum_dtype: 'bf16' },
  },
  'groups of two lanes': { zero: { lane_group: 2 } },
  'groups of two lanes in fp16, reduced in fp32 to 16-bit sums': {
    train: { precision: 'fp16' },
    zero: { lane_group: 2, reduce_dtype: 'fp32', grad_accum_dtype: 'bf16' },
  },
  'Mixtral, experts spread over two ranks, groups of two lanes': {
    model: { config: { ...SIZES, model_type: 'mixtral', num_local_experts: 4 } },
    zero: { expert_parallel_size: 2, lane_group: 2 },
  },
  'SGD without a momentum': { train: { optimizer: { type: 'sgd', momentum: 0 } } },
  'Adagrad, fp32 on the wire': {
    train: { optimizer: { type: 'adagrad' } },
    zero: { reduce_dtype: 'fp32' },
  },
  ...Object.fromEntries(FAMILIES),
};
