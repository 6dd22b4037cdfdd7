import { adaptersOf, isQuantizable, moduleOf, underAdapter } from './adapters.js';
import type { Architecture } from './architecture.js';
import { type ModelParam, matrix, type ParamShape, vector } from './param-shape.js';

export type { ModelParam } from './param-shape.js';

/** The output projection. With `tie_word_embeddings` the input embedding, the first parameter, is in its place. */
export const OUTPUT_PROJECTION = 'lm_head.weight';

/**
 * Parameters for each layer, or for each expert of each layer; `{}` in the name stands for the number of one,
 * then of the other.
 */
export interface ParamKind extends Omit<ModelParam, 'expert'> {
  /** 1 for a parameter outside of the layers. */
  layers: number;
  /** Null if all tokens share it. */
  experts: number | null;
}

/**
 * Returns the parameters of a model by kind. A model may have 200,000 parameters of some 20 kinds, so
 * counting is done by kind.
 */
export function paramKinds(architecture: Architecture): ParamKind[] {
  const { num_hidden_layers, num_experts } = architecture;
  const { before, layer, expert, after } = NAMINGS[architecture.naming](architecture);
  const base = (shapes: readonly ParamShape[]) => shapes.map((shape) => underAdapter(architecture, shape));
  const adapters = (shapes: readonly ParamShape[]) => adaptersOf(architecture, shapes);
  const kinds = (shapes: readonly ParamShape[], layers: number, experts: number | null) =>
    shapes.map(({ linear: _, ...shape }) => ({ ...shape, layers, experts }));
  return [
    ...kinds(base(before), 1, null),
    ...kinds(base(layer), num_hidden_layers, null),
    ...kinds(base(expert), num_hidden_layers, num_experts),
    ...kinds(base(after), 1, null),
    ...kinds(adapters(layer), num_hidden_layers, null),
    ...kinds(adapters(expert), num_hidden_layers, num_experts),
  ];
}

/** Returns the modules whose matrices may have adapters; `{}` stands for numbers of layers and experts. */
export function layerModules(architecture: Architecture): string[] {
  const { layer, expert } = NAMINGS[architecture.naming](architecture);
  return [...layer, ...expert].filter(({ linear }) => linear !== undefined).map(({ name }) => moduleOf(name));
}

/** Returns those of them whose matrices can be quantized. */
export function quantizableModules(architecture: Architecture): string[] {
  const { layer, expert } = NAMINGS[architecture.naming](architecture);
  return [...layer, ...expert].filter(isQuantizable).map(({ name }) => moduleOf(name));
}

/** Returns all modules with parameters, in the same form. */
export function modules(architecture: Architecture): string[] {
  return [...new Set(paramKinds(architecture).map(({ name }) => moduleOf(name)))];
}

/** Returns the number of parameters of a kind. */
export function countOf({ layers, experts }: ParamKind): number {
  return layers * (experts ?? 1);
}

/** Returns the number of elements of all parameters. */
export function numParams(architecture: Architecture): number {
  return paramKinds(architecture).reduce((sum, kind) => sum + countOf(kind) * kind.numel, 0);
}

/** Returns the name of one parameter of a kind. */
export function paramName({ name }: Pick<ParamKind, 'name'>, layer: number, expert: number): string {
  return name.replace('{}', String(layer)).replace('{}', String(expert));
}

/**
 * Returns all parameters of a model in canonical order, about that of the forward pass, with adapters behind all
 * others: the table of native/model/config/param_table.cc.
 */
export function modelParams(architecture: Architecture): ModelParam[] {
  const { before, layer, expert, after } = NAMINGS[architecture.naming](architecture);
  const under = (shapes: readonly ParamShape[]) => shapes.map((shape) => underAdapter(architecture, shape));
  const param = (
    { linear: _, ...shape }: ParamShape,
    at = 0,
    expertIndex: number | null = null,
  ): ModelParam => ({
    ...shape,
    name: paramName(shape, at, expertIndex ?? 0),
    expert: expertIndex,
  });
  const count = (length: number) => Array.from({ length }, (_, index) => index);
  const ofLayers = (shapes: readonly ParamShape[], ofExperts: readonly ParamShape[]) =>
    count(architecture.num_hidden_layers).flatMap((at) => [
      ...shapes.map((shape) => param(shape, at)),
      ...count(architecture.num_experts).flatMap((expertIndex) =>
        ofExperts.map((shape) => param(shape, at, expertIndex)),
      ),
    ]);
  const base = [
    ...under(before).map((shape) => param(shape)),
    ...ofLayers(under(layer), under(expert)),
    ...under(after).map((shape) => param(shape)),
  ];
  return [...base, ...ofLayers(adaptersOf(architecture, layer), adaptersOf(architecture, expert))];
}

interface Table {
  before: ParamShape[];
  /** Parameters of each layer, before those of its experts. */
  layer: ParamShape[];
  /** Parameters of each expert of each layer. */
  expert: ParamShape[];
  after: ParamShape[];
}

const NAMINGS: Readonly<Record<Architecture['naming'], (architecture: Architecture) => Table>> = {
  gpt2: gpt2Table,
  llama: (architecture) => decoderTable(architecture, denseMlp(architecture), []),
  mixtral: (architecture) => decoderTable(architecture, [router(architecture)], experts(architecture)),
};

/** Table of GPT-2, which has weights as (in, out), and queries, keys and values in one matrix. */
function gpt2Table(architecture: Architecture): Table {
  const { hidden_size: hidden, intermediate_size: inner, vocab_size: vocab } = architecture;
  const affine = (name: string, from: number, to: number) => [
    { ...matrix(`${name}.weight`, from, to), linear: { from, to } },
    vector(`${name}.bias`, to),
  ];
  const layerNorm = (name: string) => [vector(`${name}.weight`, hidden), vector(`${name}.bias`, hidden)];
  return {
    before: [
      matrix('transformer.wte.weight', vocab, hidden),
      matrix('transformer.wpe.weight', architecture.max_position_embeddings, hidden),
    ],
    layer: [
      ...layerNorm('transformer.h.{}.ln_1'),
      ...affine('transformer.h.{}.attn.c_attn', hidden, 3 * hidden),
      ...affine('transformer.h.{}.attn.c_proj', hidden, hidden),
      ...layerNorm('transformer.h.{}.ln_2'),
      ...affine('transformer.h.{}.mlp.c_fc', hidden, inner),
      ...affine('transformer.h.{}.mlp.c_proj', inner, hidden),
    ],
    expert: [],
    after: [...layerNorm('transformer.ln_f'), ...head(architecture)],
  };
}

const LAYER = 'model.layers.{}.';

function decoderTable(architecture: Architecture, mlp: ParamShape[], expert: ParamShape[]): Table {
  const { hidden_size: hidden, vocab_size: vocab } = architecture;
  return {
    before: [matrix('model.embed_tokens.weight', vocab, hidden)],
    layer: [
      vector(`${LAYER}input_layernorm.weight`, hidden),
      ...attention(architecture),
      vector(`${LAYER}post_attention_layernorm.weight`, hidden),
      ...mlp,
    ],
    expert,
    after: [vector('model.norm.weight', hidden), ...head(architecture)],
  };
}

function attention(architecture: Architecture): ParamShape[] {
  const { hidden_size: hidden, head_dim, qkv_bias, qk_norm } = architecture;
  const at = `${LAYER}self_attn.`;
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

function denseMlp({ hidden_size: hidden, intermediate_size: inner, mlp_bias }: Architecture): ParamShape[] {
  return [
    ...linear(`${LAYER}mlp.gate_proj`, inner, hidden, mlp_bias),
    ...linear(`${LAYER}mlp.up_proj`, inner, hidden, mlp_bias),
    ...linear(`${LAYER}mlp.down_proj`, hidden, inner, mlp_bias),
  ];
}

const MOE = `${LAYER}block_sparse_moe.`;

function router({ hidden_size, num_experts }: Architecture): ParamShape {
  const shape = projection(`${MOE}gate.weight`, num_experts, hidden_size);
  return { ...shape, linear: { from: hidden_size, to: num_experts, router: true } };
}

/** Parameters of an expert, a gated MLP: w1 is its gate, w3 goes up, w2 goes down. */
function experts({ hidden_size: hidden, intermediate_size: inner }: Architecture): ParamShape[] {
  return [
    projection(`${MOE}experts.{}.w1.weight`, inner, hidden),
    projection(`${MOE}experts.{}.w2.weight`, hidden, inner),
    projection(`${MOE}experts.{}.w3.weight`, inner, hidden),
  ];
}

function head({ tie_word_embeddings, vocab_size, hidden_size }: Architecture): ParamShape[] {
  return tie_word_embeddings ? [] : [matrix(OUTPUT_PROJECTION, vocab_size, hidden_size)];
}

function linear(name: string, to: number, from: number, bias: boolean): ParamShape[] {
  return [projection(`${name}.weight`, to, from), ...(bias ? [vector(`${name}.bias`, to)] : [])];
}

/** Matrix of a layer, stored as (out, in). */
function projection(name: string, to: number, from: number): ParamShape {
  return { ...matrix(name, to, from), linear: { from, to } };
}
