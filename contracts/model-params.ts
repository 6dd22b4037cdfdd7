import type { ResolvedLlamaConfig } from './index.js';

/** A parameter of a model, as the native core names and orders them. */
export interface ModelParam {
  name: string;
  shape: number[];
  numel: number;
  /** Whether `weight_decay` of the optimizer applies to it; norms have none. */
  decays: boolean;
}

/** What decides which parameters a model has; the rest of the configuration may differ between equal tables. */
export type ParamShapes = Pick<
  ResolvedLlamaConfig,
  | 'hidden_size'
  | 'intermediate_size'
  | 'num_hidden_layers'
  | 'num_attention_heads'
  | 'num_key_value_heads'
  | 'head_dim'
  | 'vocab_size'
  | 'tie_word_embeddings'
>;

/** All parameters of a model in canonical order: the table of native/model/param_specs.cc. */
export function modelParams(config: ParamShapes): ModelParam[] {
  const { hidden_size: hidden, intermediate_size: inner, vocab_size: vocab } = config;
  const query = config.num_attention_heads * config.head_dim;
  const keyValue = config.num_key_value_heads * config.head_dim;
  const params = [matrix('model.embed_tokens.weight', vocab, hidden)];
  for (let layer = 0; layer < config.num_hidden_layers; layer += 1) {
    const at = `model.layers.${layer}.`;
    params.push(
      norm(`${at}input_layernorm.weight`, hidden),
      matrix(`${at}self_attn.q_proj.weight`, query, hidden),
      matrix(`${at}self_attn.k_proj.weight`, keyValue, hidden),
      matrix(`${at}self_attn.v_proj.weight`, keyValue, hidden),
      matrix(`${at}self_attn.o_proj.weight`, hidden, query),
      norm(`${at}post_attention_layernorm.weight`, hidden),
      matrix(`${at}mlp.gate_proj.weight`, inner, hidden),
      matrix(`${at}mlp.up_proj.weight`, inner, hidden),
      matrix(`${at}mlp.down_proj.weight`, hidden, inner),
    );
  }
  params.push(norm('model.norm.weight', hidden));
  if (!config.tie_word_embeddings) params.push(matrix('lm_head.weight', vocab, hidden));
  return params;
}

function matrix(name: string, rows: number, columns: number): ModelParam {
  return { name, shape: [rows, columns], numel: rows * columns, decays: true };
}

function norm(name: string, size: number): ModelParam {
  return { name, shape: [size], numel: size, decays: false };
}
