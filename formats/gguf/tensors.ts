/** Tensors of a GGUF file: llama.cpp's names, shapes and layouts of a model's parameters and of its adapters. */
import type { ResolvedModelConfig } from '../../contracts/index.js';
import { architectureOf, familyOf, moduleOf, PARTS, type Part } from '../../job-document/index.js';
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
 * rows has row i and row i + n/2 rotated together, and the file has them as rows 2i and 2i + 1. `by_kind`: rows of
 * queries, keys and values by head become all queries, all keys, all values.
 */
export type Layout = 'rows' | 'transposed' | 'paired' | 'by_kind';

export interface PlannedTensor<P extends Param = Param> extends GgufTensor {
  /** Parameters whose elements follow each other in the tensor. */
  params: readonly P[];
  layout: Layout;
  /** Rows of a head of a `paired` or `by_kind` tensor. */
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

/** Names of the parts; those of experts end in `_exps`. */
const TENSORS: Readonly<Record<Part, string>> = {
  embed: 'token_embd',
  positions: 'position_embd',
  input_norm: 'attn_norm',
  qkv: 'attn_qkv',
  query: 'attn_q',
  key: 'attn_k',
  value: 'attn_v',
  query_norm: 'attn_q_norm',
  key_norm: 'attn_k_norm',
  output: 'attn_output',
  attention_output_norm: 'post_attention_norm',
  post_attention_norm: 'ffn_norm',
  shared_gate: 'ffn_gate_shexp',
  shared_up: 'ffn_up_shexp',
  shared_down: 'ffn_down_shexp',
  shared_router: 'ffn_gate_inp_shexp',
  router: 'ffn_gate_inp',
  gate: 'ffn_gate',
  up: 'ffn_up',
  gate_up: 'ffn_up',
  down: 'ffn_down',
  mlp_output_norm: 'post_ffw_norm',
  norm: 'output_norm',
  head: 'output',
};

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
  const layout = layoutOf(config, param);
  const { part, factor } = namedParam(param, config);
  const rows = layout === 'transposed' ? [...stored].reverse() : stored;
  // llama.cpp has this matrix of one row as a vector.
  const own = part === 'shared_router' && factor === undefined ? rows.slice(1) : rows;
  const shape = EXPERT.test(param) ? [params.length, ...own] : own;
  const { head_dim, norm_offset } = architectureOf(config);
  const offset = NORM.test(name) ? norm_offset : 0;
  return { name, shape, type: typeOf(name, shape, type), params, layout, headRows: head_dim, offset };
}

/** A parameter, or a factor of its adapter. */
interface NamedParam {
  part: Part;
  /** Number of the layer, if the part is in one. */
  layer: string | undefined;
  ofExpert: boolean;
  kind: 'weight' | 'bias';
  factor: 'A' | 'B' | undefined;
}

function namedParam(param: string, config: ResolvedModelConfig): NamedParam {
  const factor = FACTOR.exec(param)?.[1] as NamedParam['factor'];
  const name = param.replace(FACTOR, '.weight');
  const module = moduleOf(name).replaceAll(/(?<=\.)\d+(?=\.)/g, '{}');
  const found = Object.entries(familyOf(config).params.modules).find(([, one]) => one === module);
  if (found === undefined) throw new Error(`GGUF has no tensor for ${param}`);
  return {
    part: found[0] as Part,
    layer: /\.(\d+)\./.exec(name)?.[1],
    ofExpert: EXPERT.test(name),
    kind: name.endsWith('.bias') ? 'bias' : 'weight',
    factor,
  };
}

/** Returns llama.cpp's name of a parameter, such as `blk.0.attn_q.weight` or `blk.0.attn_q.weight.lora_a`. */
export function tensorName(param: string, config: ResolvedModelConfig): string {
  const { part, layer, ofExpert, kind, factor } = namedParam(param, config);
  const module = `${layer === undefined ? '' : `blk.${layer}.`}${TENSORS[part]}${ofExpert ? '_exps' : ''}`;
  return `${module}.${kind}${factor === undefined ? '' : `.lora_${factor.toLowerCase()}`}`;
}

function layoutOf(config: ResolvedModelConfig, param: string): Layout {
  const { part, kind, factor } = namedParam(param, config);
  const { params, gguf } = familyOf(config);
  if (params.in_first && PARTS[part].kind === 'linear' && kind === 'weight' && factor === undefined)
    return 'transposed';
  if (part === 'qkv' && architectureOf(config).qkv_by_head && factor !== 'A') return 'by_kind';
  return gguf.pairs && (part === 'query' || part === 'key') && factor !== 'A' ? 'paired' : 'rows';
}

/** Rows that are no whole number of blocks are fp16, as in llama.cpp's own files. */
function typeOf(name: string, shape: readonly number[], file: FileType): TensorType {
  if (shape.length === 1 || ALWAYS_FP32.test(name)) return 'F32';
  const type = FILE_TYPES[file].tensor;
  const columns = shape.at(-1) ?? 0;
  return columns % TENSOR_TYPES[type].elements === 0 ? type : 'F16';
}
