/** Scaling of rotary frequencies; each type reads its own fields. */
interface RopeScalingConfig {
  type: 'none' | 'linear' | 'llama3' | 'yarn';
  factor: number;
  /** `llama3`. */
  low_freq_factor: number;
  high_freq_factor: number;
  /** `llama3`, `yarn`. */
  original_max_position_embeddings: number;
  /** `yarn`. */
  beta_fast: number;
  beta_slow: number;
  /** `yarn`: times cosine and sine. 0: computed from `factor`, and from both of `mscale` where they are above 0. */
  attention_factor: number;
  mscale: number;
  mscale_all_dim: number;
  /** `yarn`: the ramp's ends are whole dimensions. */
  truncate: boolean;
}

/** Low-rank adapters over a model; the fields are those of native/model/config/adapter_config.h. */
export interface AdapterConfig {
  type: 'lora' | 'dora';
  rank: number;
  scale: number;
  dropout: number;
  init: 'kaiming_uniform' | 'gaussian';
  target_modules: string[];
  modules_to_save: string[];
}

/** A decoder of any family in one flat form; the fields are those of native/model/config/model_config.h. */
export interface ModelConfig {
  /** Names and layout of the parameters. */
  naming: 'gpt2' | 'llama' | 'mixtral';
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
  positions: 'rope' | 'learned';
  rope_theta: number;
  rope_scaling: RopeScalingConfig;
  qkv_bias: boolean;
  output_bias: boolean;
  mlp_bias: boolean;
  /** RMSNorm of each query and key head before the rotation. */
  qk_norm: boolean;
  /** Per layer: tokens that a query sees, itself included; 0: all before it. */
  layer_windows: number[];
  mlp: 'swiglu' | 'gelu' | 'gelu_tanh';
  /** 0: one dense MLP per layer. */
  num_experts: number;
  experts_per_token: number;
  router_aux_loss_coef: number;
  tie_word_embeddings: boolean;
  embedding_dropout: number;
  attention_dropout: number;
  residual_dropout: number;
  initializer_range: number;
  /** Standard deviation of the matrices whose output is added to the residual stream. */
  residual_initializer_range: number;
  /** Null: none. */
  adapter: AdapterConfig | null;
  /** Storage of the frozen matrices of layers under an adapter; null: in the compute dtype. */
  quantization: 'nf4' | 'int8' | null;
}

/** Settings that all models of the Llama family share. */
export const LLAMA_TRAITS = {
  naming: 'llama',
  norm: 'rms',
  positions: 'rope',
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
  },
  qkv_bias: false,
  output_bias: false,
  mlp_bias: false,
  qk_norm: false,
  layer_windows: [],
  mlp: 'swiglu',
  num_experts: 0,
  experts_per_token: 0,
  router_aux_loss_coef: 0,
  embedding_dropout: 0,
  attention_dropout: 0,
  residual_dropout: 0,
  adapter: null,
  quantization: null,
} satisfies Partial<ModelConfig>;
