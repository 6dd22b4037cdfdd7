/**
 * Architecture of a decoder, for all model families: what the native core, the estimate and the table of parameters
 * read. `model_config.h` in native/model/config has the same fields.
 */

/** Scaling of rotary frequencies; each type reads its own fields. */
export interface RopeScalingParams {
  type: 'none' | 'linear' | 'llama3' | 'yarn' | 'longrope';
  factor: number;
  /** `llama3`: wavelengths between original / high and original / low are scaled in part. */
  low_freq_factor: number;
  high_freq_factor: number;
  /** `llama3`, `yarn`, `longrope`: tokens that the frequencies were trained for. */
  original_max_position_embeddings: number;
  /** `yarn`: dimensions between these numbers of rotations are scaled in part. */
  beta_fast: number;
  beta_slow: number;
  /**
   * `yarn`, `longrope`: factor of cosines and sines. 0: computed from `factor`; for `yarn` also from both `mscale`
   * fields if they are positive, for `longrope` also from the original length.
   */
  attention_factor: number;
  mscale: number;
  mscale_all_dim: number;
  /** `yarn`: true if the bounds of the scaled dimensions are rounded to integers. */
  truncate: boolean;
  /**
   * `longrope`: divisors of the frequencies, one for each pair of rotated elements, for sequences up to the original
   * length and for longer ones. All positions of a sequence have the same.
   */
  short_factor: number[];
  long_factor: number[];
}

/** Low-rank adapters over a model. */
export interface AdapterParams {
  /** `dora`: each output has a magnitude. */
  type: 'lora' | 'dora';
  rank: number;
  /** Factor of the adapters' outputs. */
  scale: number;
  dropout: number;
  init: 'kaiming_uniform' | 'gaussian';
  /** Modules whose matrices have adapters: last parts of their names, such as `q_proj` or `mlp.c_proj`. */
  target_modules: string[];
  /** Modules of the model that are trained as well. */
  modules_to_save: string[];
}

export interface Architecture {
  /** Names and order of the parameters: `naming` of a family's ParamNames (job-document/model/parts.ts). */
  naming: string;
  hidden_size: number;
  intermediate_size: number;
  num_hidden_layers: number;
  num_attention_heads: number;
  num_key_value_heads: number;
  head_dim: number;
  vocab_size: number;
  max_position_embeddings: number;
  norm: 'rms' | 'layer';
  norm_eps: number;
  /** Added to the weights of RMSNorm: 0 or 1. */
  norm_offset: number;
  positions: 'rope' | 'learned';
  rope_theta: number;
  rope_scaling: RopeScalingParams;
  /**
   * Per layer: 1 rotates queries and keys by `rope_theta` and `rope_scaling`, 2 by `local_rope_theta` alone; 0 has no
   * positions. Empty: 1 everywhere.
   */
  layer_rope: number[];
  local_rope_theta: number;
  /** Leading elements of a head that are rotated. 0: all. */
  rotary_dim: number;
  /** Rotated elements 2i and 2i + 1 are a pair. False: element i of both halves of those that are rotated. */
  rope_interleaved: boolean;
  qkv_bias: boolean;
  output_bias: boolean;
  mlp_bias: boolean;
  /**
   * Rows of the matrix of queries, keys and values: those of head 0, then those of head 1, and so on. False: all
   * queries, all keys, all values.
   */
  qkv_by_head: boolean;
  /** RMSNorm of queries and keys before the rotation. */
  qk_norm: boolean;
  /** `head`: over the `head_dim` values of each head. `all`: over all query heads together, and all key heads. */
  qk_norm_scope: 'head' | 'all';
  /** Factor of attention's scores. 0: 1 / √head_dim. */
  attention_scale: number;
  /** The scaled scores x become cap · tanh(x / cap). 0: they stay. */
  attention_soft_cap: number;
  /** Per layer: 0 for full causal attention, else the number of tokens that a query sees, itself included. */
  layer_windows: number[];
  /** With a gate: `swiglu`, and `geglu_tanh` with the activation of `gelu_tanh`. */
  mlp: 'swiglu' | 'geglu_tanh' | 'gelu' | 'gelu_tanh';
  /** 0: dense. */
  num_experts: number;
  experts_per_token: number;
  /** The probabilities of a token's experts are divided by their sum. */
  norm_topk_prob: boolean;
  /**
   * Width inside an expert of all tokens. Its output is multiplied by the sigmoid of a logit of the token. 0: there is
   * none.
   */
  shared_expert_size: number;
  /** 0 excludes the auxiliary loss. */
  router_aux_loss_coef: number;
  tie_word_embeddings: boolean;
  /** Factor of the embeddings of tokens. */
  embedding_scale: number;
  /** `embedding_scale` is rounded to the compute dtype. */
  rounds_embedding_scale: boolean;
  /** The MLP reads the layer's input. False: the residual stream after attention. */
  parallel_residual: boolean;
  /** Factor of the outputs of attention and MLP that are added to the residual stream. */
  residual_scale: number;
  logits_scale: number;
  /** Of the scaled logits, as `attention_soft_cap`. */
  logits_soft_cap: number;
  embedding_dropout: number;
  attention_dropout: number;
  residual_dropout: number;
  initializer_range: number;
  /** Standard deviation of the matrices that write to the residual stream. */
  residual_initializer_range: number;
  /** Adapters over the model, whose own parameters are frozen then; null without. */
  adapter: AdapterParams | null;
  /** Storage of the frozen matrices of layers under an adapter; null: in the training precision. */
  quantization: 'nf4' | 'int8' | null;
}

/** Traits of a plain Llama. A family states in which traits it differs. */
export const LLAMA_TRAITS = {
  naming: 'llama',
  norm: 'rms',
  norm_offset: 0,
  positions: 'rope',
  rope_theta: 10_000,
  rope_scaling: {
    type: 'none',
    factor: 1,
    low_freq_factor: 1,
    high_freq_factor: 4,
    original_max_position_embeddings: 0,
    beta_fast: 32,
    beta_slow: 1,
    attention_factor: 0,
    mscale: 0,
    mscale_all_dim: 0,
    truncate: true,
    short_factor: [],
    long_factor: [],
  },
  layer_rope: [],
  local_rope_theta: 10_000,
  rotary_dim: 0,
  rope_interleaved: false,
  qkv_bias: false,
  output_bias: false,
  mlp_bias: false,
  qkv_by_head: false,
  qk_norm: false,
  qk_norm_scope: 'head',
  attention_scale: 0,
  attention_soft_cap: 0,
  layer_windows: [],
  mlp: 'swiglu',
  num_experts: 0,
  experts_per_token: 0,
  norm_topk_prob: true,
  shared_expert_size: 0,
  router_aux_loss_coef: 0,
  tie_word_embeddings: false,
  embedding_scale: 1,
  rounds_embedding_scale: false,
  parallel_residual: false,
  residual_scale: 1,
  logits_scale: 1,
  logits_soft_cap: 0,
  embedding_dropout: 0,
  attention_dropout: 0,
  residual_dropout: 0,
  adapter: null,
  quantization: null,
} satisfies Partial<Architecture>;
