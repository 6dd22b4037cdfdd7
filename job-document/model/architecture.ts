export interface RopeScalingParams {
  type: 'none' | 'linear' | 'llama3' | 'yarn';
  factor: number;
  /** `llama3`: wavelengths between original / high and original / low are scaled in part. */
  low_freq_factor: number;
  high_freq_factor: number;
  /** `llama3`, `yarn`: tokens that the frequencies were trained for. */
  original_max_position_embeddings: number;
  /** `yarn`: dimensions between these numbers of rotations are scaled in part. */
  beta_fast: number;
  beta_slow: number;
  /**
   * `yarn`: factor of cosines and sines. 0: computed from `factor`, and from both `mscale` fields if they are
   * positive.
   */
  attention_factor: number;
  mscale: number;
  mscale_all_dim: number;
  /** `yarn`: true if the bounds of the scaled dimensions are rounded to integers. */
  truncate: boolean;
}

/** Low-rank adapters over a model; the fields are those of native/model/config/adapter_config.h. */
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

/**
 * Decoder architecture of the native core, for all model families. The parameter table, the estimate and the
 * ranks use only this form; the fields are those of native/model/config/model_config.h.
 */
export interface Architecture {
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
  rope_scaling: RopeScalingParams;
  qkv_bias: boolean;
  output_bias: boolean;
  mlp_bias: boolean;
  /** RMSNorm over the `head_dim` values of each query and key head, before the rotation. */
  qk_norm: boolean;
  /** Per layer: 0 for full causal attention, else the number of tokens that a query sees, itself included. */
  layer_windows: number[];
  mlp: 'swiglu' | 'gelu' | 'gelu_tanh';
  /** 0: dense. */
  num_experts: number;
  experts_per_token: number;
  /** 0 excludes the auxiliary loss. */
  router_aux_loss_coef: number;
  tie_word_embeddings: boolean;
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
