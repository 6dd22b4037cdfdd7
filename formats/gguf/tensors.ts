/** Tensors of a GGUF file: llama.cpp's names, shapes and layouts of a model's parameters and of its adapters. */
import type { ResolvedModelConfig } from '../../contracts/index.js';
import { architectureOf, moduleOf } from '../../job-document/index.js';
import { ggufArchitecture } from './architecture.js';
import type { GgufTensor, TensorType } from './file.js';
import { TENSOR_TYPES } from './file.js';

export interface Param {
  name: string;
  shape: readonly number[];
  numel: number;
}

/**
 * Order of a tensor's elements. `rows`: that of its parameters. `transposed`: a GPT-2 matrix, stored as (in, out),
 * becomes (out, in). `paired`: rows of queries or keys for llama.cpp's rotation of neighbouring elements. A head of n
 * rows has row i and row i + n/2 rotated together, and the file has them as rows 2i and 2i + 1.
 */
export type Layout = 'rows' | 'transposed' | 'paired';

export interface PlannedTensor<P extends Param = Param> extends GgufTensor {
  /** Parameters whose elements follow each other in the tensor. */
  params: readonly P[];
  layout: Layout;
  /** Rows of a head of a `paired` tensor. */
  headRows: number;
  /** Added to each element: llama.cpp has no offset of norms. */
  offset: number;
}

/** Formats of the matrices of a file. */
export type FileType = 'fp32' | 'fp16' | 'bf16' | 'q8_0';

/** Storage of matrices, and the code of such a file in `general.file_type`. */
export const FILE_TYPES = {
  fp32: { tensor: 'F32', code: 0 },
  fp16: { tensor: 'F16', code: 1 },
  q8_0: { tensor: 'Q8_0', code: 7 },
  bf16: { tensor: 'BF16', code: 32 },
} as const satisfies Record<FileType, { tensor: TensorType; code: number }>;

/** Modules outside of the layers, then of a layer. */
const MODULES: Readonly<Record<string, string>> = {
  'model.embed_tokens': 'token_embd',
  'model.norm': 'output_norm',
  lm_head: 'output',
  'transformer.wte': 'token_embd',
  'transformer.wpe': 'position_embd',
  'transformer.ln_f': 'output_norm',
};
const LAYER_MODULES: Readonly<Record<string, string>> = {
  input_layernorm: 'attn_norm',
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.qkv_proj': 'attn_qkv',
  'self_attn.o_proj': 'attn_output',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
  post_attention_layernorm: 'ffn_norm',
  post_feedforward_layernorm: 'post_ffw_norm',
  post_self_attn_layernorm: 'post_attention_norm',
  post_mlp_layernorm: 'post_ffw_norm',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.gate_up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
  'mlp.gate': 'ffn_gate_inp',
  'mlp.experts.gate_proj': 'ffn_gate_exps',
  'mlp.experts.up_proj': 'ffn_up_exps',
  'mlp.experts.down_proj': 'ffn_down_exps',
  'block_sparse_moe.gate': 'ffn_gate_inp',
  'block_sparse_moe.experts.w1': 'ffn_gate_exps',
  'block_sparse_moe.experts.w2': 'ffn_down_exps',
  'block_sparse_moe.experts.w3': 'ffn_up_exps',
  ln_1: 'attn_norm',
  'attn.c_attn': 'attn_qkv',
  'attn.c_proj': 'attn_output',
  ln_2: 'ffn_norm',
  'mlp.c_fc': 'ffn_up',
  'mlp.c_proj': 'ffn_down',
};

/** Modules of models whose norms stand behind attention and MLP, before them too in some. */
const OUTPUT_NORMS: Readonly<Record<string, string>> = {
  post_attention_layernorm: 'post_attention_norm',
  pre_feedforward_layernorm: 'ffn_norm',
};
const WITH_OUTPUT_NORMS = ['olmo2', 'gemma3', 'gemma2'];

const NORM = /_norm\.weight$/;
const EXPERT = /\.experts\.\d+\./;
const FACTOR = /\.lora_([AB])\.weight$/;
/** Small tensors that llama.cpp computes with in fp32, besides vectors. */
const ALWAYS_FP32 = /^position_embd\.|\.ffn_gate_inp\.weight$/;

/**
 * Returns the tensors of a file in the order of the parameters. The experts of a layer are one tensor (E, out, in).
 * @param params those of a model, or the factors of its adapters
 */
export function plannedTensors<P extends Param>(
  config: ResolvedModelConfig,
  params: readonly P[],
  type: FileType,
): PlannedTensor<P>[] {
  const byName = new Map<string, P[]>();
  for (const param of params) {
    const name = tensorName(param.name, config);
    const others = byName.get(name);
    if (others) others.push(param);
    else byName.set(name, [param]);
  }
  return [...byName].map(([name, group]) => planned(config, name, group, type));
}

function planned<P extends Param>(
  config: ResolvedModelConfig,
  name: string,
  params: readonly P[],
  type: FileType,
): PlannedTensor<P> {
  const [{ name: param, shape: stored } = { name, shape: [] }] = params;
  const layout = layoutOf(config, param, stored);
  const own = layout === 'transposed' ? [...stored].reverse() : stored;
  const shape = EXPERT.test(param) ? [params.length, ...own] : own;
  const { head_dim, norm_offset } = architectureOf(config);
  const offset = NORM.test(name) ? norm_offset : 0;
  return { name, shape, type: typeOf(name, shape, type), params, layout, headRows: head_dim, offset };
}

/** Returns llama.cpp's name of a parameter, such as `blk.0.attn_q.weight` or `blk.0.attn_q.weight.lora_a`. */
export function tensorName(param: string, config: ResolvedModelConfig): string {
  const [, factor] = FACTOR.exec(param) ?? [];
  const weight = param.replace(FACTOR, '.weight');
  const module = moduleOf(weight).replace(EXPERT, '.experts.');
  const [, layer, inLayer = ''] = /^(?:model\.layers|transformer\.h)\.(\d+)\.(.*)$/.exec(module) ?? [];
  const outputs = WITH_OUTPUT_NORMS.includes(ggufArchitecture(config)) ? OUTPUT_NORMS : {};
  const found = layer === undefined ? MODULES[module] : (outputs[inLayer] ?? LAYER_MODULES[inLayer]);
  if (found === undefined) throw new Error(`GGUF has no tensor for ${param}`);
  const name = `${layer === undefined ? '' : `blk.${layer}.`}${found}.${weight.slice(weight.lastIndexOf('.') + 1)}`;
  return factor === undefined ? name : `${name}.lora_${factor.toLowerCase()}`;
}

function layoutOf(config: ResolvedModelConfig, param: string, { length }: readonly number[]): Layout {
  const [, factor] = FACTOR.exec(param) ?? [];
  switch (config.model_type) {
    case 'gpt2':
      return factor === undefined && length === 2 && /\.h\.\d+\./.test(param) ? 'transposed' : 'rows';
    case 'llama':
    case 'mistral':
    case 'mixtral':
    case 'smollm3':
    case 'granite':
      return /\.(q|k)_proj\./.test(param) && factor !== 'A' ? 'paired' : 'rows';
    case 'qwen2':
    case 'qwen3':
    case 'olmo2':
    case 'olmo3':
    case 'qwen3_moe':
    case 'gemma3_text':
    case 'gemma2':
    case 'phi3':
    case 'glm4':
      return 'rows';
  }
}

/** Rows that are no whole number of blocks are fp16, as in llama.cpp's own files. */
function typeOf(name: string, shape: readonly number[], file: FileType): TensorType {
  if (shape.length === 1 || ALWAYS_FP32.test(name)) return 'F32';
  const type = FILE_TYPES[file].tensor;
  const columns = shape.at(-1) ?? 0;
  return columns % TENSOR_TYPES[type].elements === 0 ? type : 'F16';
}
