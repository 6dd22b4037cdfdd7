import type { Architecture } from '../../contracts/architecture.js';
import type { InstructionSet, ResolvedJobSpec } from '../../contracts/index.js';
import { trainedArchitecture } from '../model/adapters.js';
import { paramNamesOf } from '../model/families/families.js';
import { addsLeaves, leafSequences } from '../model/leaves.js';
import { countOf } from '../model/params.js';
import type { ParamNames, Part } from '../model/parts.js';
import { type SplitKind, splitParams } from '../resolve/param-groups.js';

/** Device of a rank. */
export type EstimateDevice = 'cpu' | 'cuda';

/** Inputs of the sizes besides the job. */
export interface Machine {
  /** Device of the rank. With `cuda` the sizes are those of GPU memory, and the fields below have no effect. */
  device: EstimateDevice;
  /** Threads of a rank. */
  threads: number;
  /** Instruction set. The one with bf16 products packs operands in half the space. */
  instruction_set: InstructionSet;
}

/** Columns of a packed operand panel. */
export const PANEL = 32;
/** Bytes of a cache line. Rows of a tensor lie a multiple of it apart. */
export const CACHE_LINE = 64;
/** Rows of a tensor never lie a multiple of this apart. */
const ROW_PERIOD = 2048;
/** Rows of a chunk are a multiple of it. */
export const ROW_CHUNK = 64;
/** The most rows that are computed at once with activation checkpointing (kernels/backends). */
const MAX_ROWS_AT_ONCE = { cpu: 2_048, cuda: 16_384 };

export const roundUp = (value: number, to: number) => Math.ceil(value / to) * to;

/** Returns the rows of equal chunks of at most `most`. */
export function chunkRows(rows: number, most: number): number {
  return Math.min(rows, roundUp(rows / Math.ceil(rows / most), ROW_CHUNK));
}

/**
 * Returns whether nothing but rounding to the training precision happens to a gradient before it is exchanged
 * (weight_gradients() of native/train/trainer.cc).
 */
function gradientsAreOnlyRounded(spec: ResolvedJobSpec): boolean {
  const { train, zero } = spec;
  return zero.reduce_dtype === train.precision && zero.gradient_predivide_factor === 1 && !addsLeaves(spec);
}

/**
 * Returns the lowest layer in which a parameter of a kind is trained; null for a kind outside of the layers, and if all
 * are frozen.
 */
function lowestTrained({ kind, frozen, numFrozen }: SplitKind): number | null {
  if (!kind.name.includes('{}') || numFrozen === countOf(kind)) return null;
  const experts = Array.from({ length: kind.experts ?? 1 }, (_, expert) => expert);
  for (let layer = 0; layer < kind.layers; layer++)
    if (experts.some((expert) => !frozen.has(layer, expert))) return layer;
  return null;
}

/** Sizes of one job on one machine. */
export class Sizes {
  readonly element: number;
  readonly pairs: boolean;
  readonly onGpu: boolean;
  readonly hidden: number;
  readonly inner: number;
  readonly query: number;
  readonly keyValue: number;
  /** Columns of queries, keys and values in one tensor. */
  readonly qkv: number;
  /** Columns between the two products of an MLP; a gate doubles them. */
  readonly widened: number;
  /** The most columns of both in any MLP, that of an expert for all tokens included. */
  readonly widest: { inner: number; widened: number };
  /** Sequences of a micro-batch. */
  readonly sequences: number;
  /** Rows of a micro-batch. */
  readonly rows: number;
  /** Rows that an MLP, or the backward pass of a product, computes at once. Experts compute all of theirs. */
  readonly rowsAtOnce: number;
  readonly model: Architecture;
  /** Ranks that the experts are spread over. */
  readonly expertSets: number;
  /**
   * Rows of all experts of a rank in one layer. With spread experts it is an even share of all rows, which the
   * auxiliary loss aims at. In the worst case all rows go to one rank: expertSets times as many. A GPU's memory for
   * them grows by an eighth more than necessary (row_exchange.cc).
   */
  readonly expertRows: number;
  readonly names: ParamNames;
  /** True if weights are stored as (in, out). */
  readonly inFirst: boolean;
  /** Rank of adapters; 0 without. */
  readonly rank: number;
  /** True if adapters have magnitudes. */
  readonly magnitudes: boolean;
  /** Bytes of an element of a weight's gradient as its product leaves it. */
  readonly gradientElement: number;

  constructor(
    readonly spec: ResolvedJobSpec,
    readonly machine: Machine,
  ) {
    const { train } = spec;
    const model = trainedArchitecture(spec);
    this.model = model;
    this.expertSets = spec.zero.expert_parallel_size;
    this.element = train.precision === 'fp32' ? 4 : 2;
    this.onGpu = machine.device === 'cuda';
    this.pairs = train.precision === 'bf16' && machine.instruction_set === 'avx512bf16';
    this.hidden = model.hidden_size;
    this.inner = model.intermediate_size;
    this.query = model.num_attention_heads * model.head_dim;
    this.keyValue = model.num_key_value_heads * model.head_dim;
    this.qkv = this.query + 2 * this.keyValue;
    this.widened = this.inner * (model.mlp === 'swiglu' || model.mlp === 'geglu_tanh' ? 2 : 1);
    const shared = model.shared_expert_size;
    this.widest = { inner: Math.max(this.inner, shared), widened: Math.max(this.widened, 2 * shared) };
    this.names = paramNamesOf(model);
    this.inFirst = this.names.in_first;
    this.rank = model.adapter?.rank ?? 0;
    this.magnitudes = model.adapter?.type === 'dora';
    this.sequences = leafSequences(train);
    this.rows = this.sequences * train.sequence_length;
    const most = train.activation_checkpointing ? MAX_ROWS_AT_ONCE[machine.device] : this.rows;
    this.rowsAtOnce = chunkRows(this.rows, most);
    const share = this.rows * model.experts_per_token;
    this.gradientElement = this.onGpu && gradientsAreOnlyRounded(spec) ? this.element : 4;
    this.expertRows = this.onGpu && this.expertSets > 1 ? share + Math.floor(share / 8) : share;
  }

  /**
   * Returns whether a parameter is trained, in one layer or one expert at least. @param name the end of its name,
   * behind a dot
   */
  trains(name: string): boolean {
    return splitParams(this.spec).some(
      ({ kind, numFrozen }) => `.${kind.name}`.endsWith(`.${name}`) && numFrozen < countOf(kind),
    );
  }

  hasPart(part: Part): boolean {
    return this.names.modules[part] !== undefined;
  }

  /** Returns whether the weight or the bias of a part is trained, in one layer or one expert at least. */
  trainsPart(part: Part): boolean {
    const module = this.names.modules[part];
    return module !== undefined && (this.trains(`${module}.weight`) || this.trains(`${module}.bias`));
  }

  /** Returns the lowest layer with a trained parameter, 0 if the embeddings have one, or the number of layers. */
  lowestTrainedLayer(): number {
    if (this.trainsPart('embed') || this.trainsPart('positions')) return 0;
    const lowest = splitParams(this.spec).map((split) => lowestTrained(split) ?? Infinity);
    return Math.min(this.model.num_hidden_layers, ...lowest);
  }

  /** Returns whether a parameter has adapters, of whose factors any may be frozen. @param name as in `trains` */
  isAdapted(name: string): boolean {
    return splitParams(this.spec).some(({ kind }) => `.${kind.name}`.endsWith(`.${name}.lora_A.weight`));
  }

  /** Returns the bytes of a tensor in the training precision for a micro-batch. */
  tensor(columns: number): number {
    return this.rows * this.row(columns);
  }

  /** Returns the bytes of one row of a tensor. */
  row(columns: number, element = this.element): number {
    const bytes = roundUp(columns * element, CACHE_LINE);
    return bytes + (bytes % ROW_PERIOD === 0 ? CACHE_LINE : 0);
  }

  /** Returns the words of a depth. */
  steps(depth: number): number {
    return this.pairs ? Math.ceil(depth / 2) : depth;
  }

  /**
   * Returns the bytes of a packed operand (depth, columns) of a matrix product. GPUs read operands unpacked.
   */
  packed(depth: number, columns: number): number {
    if (this.onGpu) return 0;
    return 4 * this.steps(depth) * roundUp(columns, PANEL);
  }
}
