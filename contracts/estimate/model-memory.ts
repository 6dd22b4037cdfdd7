/**
 * What the model of one rank keeps besides its parameters: the formulas beside native/model's allocations
 * (layer_parts.cc, loss_head.cc, transformer.cc), of a worker that computes on a CPU.
 */
import type { InstructionSet, ResolvedJobSpec } from '../index.js';
import { type Architecture, architectureOf } from '../model/index.js';

/** What the sizes depend on besides the job. */
export interface Machine {
  /** Threads of a rank. */
  threads: number;
  /** Path of instructions. The one that multiplies bf16 packs operands in half the space. */
  instruction_set: InstructionSet;
}

export interface ModelMemory {
  /** Activations, gradients on their way, and work space of kernels. */
  activations: number;
  /** Copies of the weights in the order in which matrix products read them. */
  packed_weights: number;
}

/** Columns that operands are packed in. */
const PANEL = 32;
/** Rows of a padded tensor never lie a multiple of this apart. */
const ROW_PERIOD = 2048;
const CACHE_LINE = 64;
const MAX_LOGITS_BYTES = 64 * 1024 * 1024;
/** Rows of logits are made in multiples of this. */
const LOGIT_ROWS = 64;
/** Query rows that attention works on at once. */
const QUERY_ROWS = 64;
/** Keys of its blocks. */
const KEY_ROWS = 256;
/** Work space of a matrix product, per thread. */
const GEMM_SCRATCH = 536_576;

const roundUp = (value: number, to: number) => Math.ceil(value / to) * to;

/** Sizes of one job on one machine. */
class Sizes {
  readonly element: number;
  readonly pairs: boolean;
  readonly hidden: number;
  readonly inner: number;
  readonly query: number;
  readonly keyValue: number;
  readonly rows: number;
  readonly model: Architecture;

  constructor(
    readonly spec: ResolvedJobSpec,
    readonly machine: Machine,
  ) {
    const { train } = spec;
    const model = architectureOf(spec.model.config);
    this.model = model;
    this.element = train.precision === 'fp32' ? 4 : 2;
    this.pairs = train.precision === 'bf16' && machine.instruction_set === 'avx512bf16';
    this.hidden = model.hidden_size;
    this.inner = model.intermediate_size;
    this.query = model.num_attention_heads * model.head_dim;
    this.keyValue = model.num_key_value_heads * model.head_dim;
    this.rows = train.micro_batch_size * train.sequence_length;
  }

  /** Bytes of one row of a tensor. */
  row(columns: number, element = this.element): number {
    const bytes = columns * element;
    return bytes + (bytes % ROW_PERIOD === 0 ? CACHE_LINE : 0);
  }

  /** Words of depth. */
  steps(depth: number): number {
    return this.pairs ? Math.ceil(depth / 2) : depth;
  }

  /** Bytes of an operand (depth, columns) of a matrix product. */
  packed(depth: number, columns: number): number {
    return 4 * this.steps(depth) * roundUp(columns, PANEL);
  }
}

/** Bytes of one rank, from its first backward pass on. */
export function modelMemory(spec: ResolvedJobSpec, machine: Machine): ModelMemory {
  const sizes = new Sizes(spec, machine);
  const { num_hidden_layers: layers, vocab_size: vocab } = sizes.model;
  const { hidden } = sizes;
  const head = sizes.packed(hidden, vocab) + sizes.packed(vocab, hidden);
  return {
    packed_weights: layers * layerWeights(sizes) + head,
    activations:
      layers * layerActivations(sizes) +
      layerGradients(sizes) +
      lossHead(sizes) +
      afterLayers(sizes) +
      machine.threads * Math.max(GEMM_SCRATCH, attentionScratch(sizes)),
  };
}

function layerWeights(sizes: Sizes): number {
  const { hidden, inner, query, keyValue } = sizes;
  const forward =
    sizes.packed(hidden, query) +
    2 * sizes.packed(hidden, keyValue) +
    sizes.packed(query, hidden) +
    2 * sizes.packed(hidden, inner) +
    sizes.packed(inner, hidden);
  const backward =
    sizes.packed(query + 2 * keyValue, hidden) +
    sizes.packed(hidden, query) +
    sizes.packed(2 * inner, hidden) +
    sizes.packed(hidden, inner);
  return forward + backward;
}

function layerActivations(sizes: Sizes): number {
  const { hidden, inner, query, keyValue, rows } = sizes;
  const heads = sizes.model.num_attention_heads;
  const tensors =
    4 * sizes.row(hidden) +
    sizes.row(query + 2 * keyValue) +
    sizes.row(query) +
    sizes.row(2 * inner) +
    sizes.row(inner);
  return rows * tensors + 4 * rows * (2 + heads);
}

/** Gradients of one layer, for one is worked on at a time. */
function layerGradients(sizes: Sizes): number {
  const { hidden, inner, query, keyValue, rows } = sizes;
  const tensors =
    2 * sizes.row(hidden) +
    sizes.row(query + 2 * keyValue) +
    sizes.row(query) +
    sizes.row(2 * inner) +
    sizes.row(inner);
  const operands = sizes.packed(rows, hidden) + sizes.packed(rows, query) + sizes.packed(rows, inner);
  const params = 2 * hidden * query + 2 * hidden * keyValue + 3 * hidden * inner + hidden;
  return rows * tensors + operands + 4 * params;
}

function lossHead(sizes: Sizes): number {
  const { hidden, rows } = sizes;
  const vocab = sizes.model.vocab_size;
  const fitting = Math.floor(Math.floor(MAX_LOGITS_BYTES / (vocab * 4)) / LOGIT_ROWS) * LOGIT_ROWS;
  const chunk = Math.min(rows, Math.max(LOGIT_ROWS, fitting));
  const rest = rows % chunk;
  return (
    chunk * sizes.row(vocab, 4) +
    4 * chunk +
    sizes.packed(chunk, hidden) +
    (rest === 0 ? 0 : sizes.packed(rest, hidden))
  );
}

/** What follows the layers, the table of rotations, and the gradient of the head and the embedding. */
function afterLayers(sizes: Sizes): number {
  const { hidden, rows, spec } = sizes;
  const { head_dim, vocab_size } = sizes.model;
  return (
    3 * rows * sizes.row(hidden) +
    4 * rows +
    4 * spec.train.sequence_length * head_dim +
    4 * vocab_size * hidden
  );
}

/** Work space of the backward pass of attention, per thread. */
function attentionScratch(sizes: Sizes): number {
  const length = sizes.spec.train.sequence_length;
  const dim = sizes.model.head_dim;
  const [lengthPanels, dimPanels] = [roundUp(length, PANEL), roundUp(dim, PANEL)];
  const blockPanels = roundUp(Math.min(length, KEY_ROWS), PANEL);
  const scores = QUERY_ROWS * (blockPanels + 32);
  const words = [
    lengthPanels * sizes.steps(dim),
    lengthPanels * sizes.steps(dim),
    dimPanels * sizes.steps(length),
    QUERY_ROWS * sizes.steps(dim),
    QUERY_ROWS * sizes.steps(dim),
    dimPanels * sizes.steps(QUERY_ROWS),
    dimPanels * sizes.steps(QUERY_ROWS),
    blockPanels * sizes.steps(QUERY_ROWS),
    blockPanels * sizes.steps(QUERY_ROWS),
    scores,
    scores,
    scores,
    scores,
    length * dim,
    length * dim,
    QUERY_ROWS * dim,
    QUERY_ROWS,
  ];
  return words.reduce((sum, count) => sum + roundUp(4 * count, CACHE_LINE), 0);
}
