import type { Architecture } from './model/index.js';

/** A parameter of a model, as the native core names and orders them. */
export interface ModelParam {
  name: string;
  shape: number[];
  numel: number;
  /** Whether `weight_decay` of the optimizer applies to it; norms and biases have none. */
  decays: boolean;
  /** Number of the expert that it belongs to; null: all tokens share it. */
  expert: number | null;
}

/** All parameters of a model in canonical order, about that of the forward: the table of native/model/param_specs.cc. */
export function modelParams(architecture: Architecture): ModelParam[] {
  const { num_hidden_layers } = architecture;
  const { before, layer, after } = NAMINGS[architecture.naming](architecture);
  const layers = Array.from({ length: num_hidden_layers }, (_, index) => layer(index)).flat();
  return [...before, ...layers, ...after];
}

interface Table {
  before: ModelParam[];
  layer(index: number): ModelParam[];
  after: ModelParam[];
}

const NAMINGS: Readonly<Record<Architecture['naming'], (architecture: Architecture) => Table>> = {
  gpt2: gpt2Table,
  llama: (architecture) => decoderTable(architecture, denseMlp),
  mixtral: (architecture) => decoderTable(architecture, experts),
};

/** GPT-2 has weights as (in, out), and queries, keys and values in one matrix. */
function gpt2Table(architecture: Architecture): Table {
  const { hidden_size: hidden, intermediate_size: inner, vocab_size: vocab } = architecture;
  const affine = (name: string, from: number, to: number) => [
    matrix(`${name}.weight`, from, to),
    vector(`${name}.bias`, to),
  ];
  const layerNorm = (name: string) => [vector(`${name}.weight`, hidden), vector(`${name}.bias`, hidden)];
  return {
    before: [
      matrix('transformer.wte.weight', vocab, hidden),
      matrix('transformer.wpe.weight', architecture.max_position_embeddings, hidden),
    ],
    layer: (index) => {
      const at = `transformer.h.${index}.`;
      return [
        ...layerNorm(`${at}ln_1`),
        ...affine(`${at}attn.c_attn`, hidden, 3 * hidden),
        ...affine(`${at}attn.c_proj`, hidden, hidden),
        ...layerNorm(`${at}ln_2`),
        ...affine(`${at}mlp.c_fc`, hidden, inner),
        ...affine(`${at}mlp.c_proj`, inner, hidden),
      ];
    },
    after: [...layerNorm('transformer.ln_f'), ...head(architecture)],
  };
}

function decoderTable(
  architecture: Architecture,
  mlp: (at: string, architecture: Architecture) => ModelParam[],
): Table {
  const { hidden_size: hidden, vocab_size: vocab } = architecture;
  return {
    before: [matrix('model.embed_tokens.weight', vocab, hidden)],
    layer: (index) => {
      const at = `model.layers.${index}.`;
      return [
        vector(`${at}input_layernorm.weight`, hidden),
        ...attention(`${at}self_attn.`, architecture),
        vector(`${at}post_attention_layernorm.weight`, hidden),
        ...mlp(at, architecture),
      ];
    },
    after: [vector('model.norm.weight', hidden), ...head(architecture)],
  };
}

function attention(at: string, architecture: Architecture): ModelParam[] {
  const { hidden_size: hidden, head_dim, qkv_bias, qk_norm } = architecture;
  const query = architecture.num_attention_heads * head_dim;
  const keyValue = architecture.num_key_value_heads * head_dim;
  return [
    ...linear(`${at}q_proj`, query, hidden, qkv_bias),
    ...linear(`${at}k_proj`, keyValue, hidden, qkv_bias),
    ...linear(`${at}v_proj`, keyValue, hidden, qkv_bias),
    ...(qk_norm ? [vector(`${at}q_norm.weight`, head_dim), vector(`${at}k_norm.weight`, head_dim)] : []),
    ...linear(`${at}o_proj`, hidden, query, architecture.output_bias),
  ];
}

function denseMlp(at: string, architecture: Architecture): ModelParam[] {
  const { hidden_size: hidden, intermediate_size: inner, mlp_bias } = architecture;
  return [
    ...linear(`${at}mlp.gate_proj`, inner, hidden, mlp_bias),
    ...linear(`${at}mlp.up_proj`, inner, hidden, mlp_bias),
    ...linear(`${at}mlp.down_proj`, hidden, inner, mlp_bias),
  ];
}

/** Each expert is a gated MLP: w1 is its gate, w3 goes up, w2 goes down. */
function experts(at: string, architecture: Architecture): ModelParam[] {
  const { hidden_size: hidden, intermediate_size: inner, num_experts } = architecture;
  const moe = `${at}block_sparse_moe.`;
  const ofExperts = Array.from({ length: num_experts }, (_, expert) => [
    { ...matrix(`${moe}experts.${expert}.w1.weight`, inner, hidden), expert },
    { ...matrix(`${moe}experts.${expert}.w2.weight`, hidden, inner), expert },
    { ...matrix(`${moe}experts.${expert}.w3.weight`, inner, hidden), expert },
  ]);
  return [matrix(`${moe}gate.weight`, num_experts, hidden), ...ofExperts.flat()];
}

function head({ tie_word_embeddings, vocab_size, hidden_size }: Architecture): ModelParam[] {
  return tie_word_embeddings ? [] : [matrix('lm_head.weight', vocab_size, hidden_size)];
}

function linear(name: string, to: number, from: number, bias: boolean): ModelParam[] {
  return [matrix(`${name}.weight`, to, from), ...(bias ? [vector(`${name}.bias`, to)] : [])];
}

function matrix(name: string, rows: number, columns: number): ModelParam {
  return { name, shape: [rows, columns], numel: rows * columns, decays: true, expert: null };
}

function vector(name: string, size: number): ModelParam {
  return { name, shape: [size], numel: size, decays: false, expert: null };
}
