/**
 * Memory of a sample in a session, besides the model's: the formulas of native/train/session/sampling.cc,
 * native/serve/continuous_batch.cc and native/model/transformer/decoder.cc.
 */
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { layerMemory, normKept } from './layer-memory.js';
import { type Linear, linearOf } from './linear-memory.js';
import { sharedLinears } from './mlp-memory.js';
import { type Machine, PANEL, roundUp, Sizes } from './sizes.js';

/** Rows of a pass, and sequences that run at once. */
const [MAX_ROWS, MAX_SEQUENCES] = [128, 32];
/** Tokens of the KV cache, or of one sequence if that is longer. */
const CACHE_TOKENS = 16_384;
const PAGE_TOKENS = 32;
/** Bytes of a block of packed codes (native/kernels/gemm/packed_codes.h), and its depth. */
const CODE_BYTES = { nf4: 1024, int8: 2048 };
const CODE_DEPTH = 64;

/** Returns the sizes of a pass of a sample. */
export function sampledSizes(spec: ResolvedJobSpec, machine: Machine): Sizes {
  const { train } = spec;
  const shape = { sequence_length: MAX_ROWS, micro_batch_size: 1, activation_checkpointing: false };
  return new Sizes({ ...spec, train: { ...train, ...shape } }, machine);
}

/** Returns the bytes of the largest sample. */
export function samplingMemory(spec: ResolvedJobSpec, machine: Machine) {
  const sizes = sampledSizes(spec, machine);
  const { hidden, model, rows } = sizes;
  const length = spec.train.sequence_length;
  const logits = sizes.row(model.vocab_size, 4) + (sizes.onGpu ? 0 : 4 * model.vocab_size);
  return {
    packed_weights: sizes.onGpu ? 0 : model.num_hidden_layers * layerCopies(sizes),
    activations:
      kvCache(sizes, length) +
      4 * sizes.tensor(hidden) +
      layerMemory(sizes).kept +
      normKept(sizes) +
      MAX_SEQUENCES * (sizes.row(hidden) + logits + 4) +
      rotations(sizes, length) +
      (sizes.onGpu ? 4 * (8 * rows + MAX_SEQUENCES * (2 + 2 * pagesOf(length))) : 0),
  };
}

const pagesOf = (tokens: number) => Math.ceil(tokens / PAGE_TOKENS);

/** One more page is for rows that fill up a pass. */
function kvCache(sizes: Sizes, length: number): number {
  const { num_hidden_layers, num_key_value_heads, head_dim } = sizes.model;
  const tokens = Math.max(length, Math.min(CACHE_TOKENS, MAX_SEQUENCES * (length + PAGE_TOKENS)));
  const ofHead = sizes.onGpu
    ? 2 * sizes.element * PAGE_TOKENS * head_dim
    : 4 * (sizes.steps(head_dim) * PANEL + sizes.steps(PAGE_TOKENS) * roundUp(head_dim, PANEL));
  return (pagesOf(tokens) + 1) * num_hidden_layers * num_key_value_heads * ofHead;
}

/** With longrope the rows of short sequences stand before those of long ones. */
function rotations({ model }: Sizes, length: number): number {
  if (model.positions !== 'rope') return 0;
  const { type, original_max_position_embeddings: original } = model.rope_scaling;
  const short = type === 'longrope' && length > original ? original : 0;
  const local = model.layer_rope.includes(2) ? length : 0;
  return 4 * (length + short + local) * (model.rotary_dim || model.head_dim);
}

/** Returns the copies of a layer's weights that the model itself has not. A router is never quantized. */
function layerCopies(sizes: Sizes): number {
  const { model } = sizes;
  const copies = (linear: Linear) => sumOf(linear, (columns) => packed(sizes, linear.from, columns));
  const { quantization } = model;
  const ofBase = (linear: Linear) =>
    quantization === null
      ? copies(linear)
      : sumOf(linear, (columns) => packedCodes(sizes, quantization, linear.from, columns));
  const attention =
    ofBase(linearOf(sizes, 'qkv', 'query', 'key', 'value')) + ofBase(linearOf(sizes, 'output'));
  const mlp = () => ofBase(linearOf(sizes, 'gate_up', 'gate', 'up')) + ofBase(linearOf(sizes, 'down'));
  if (model.num_experts === 0) return attention + mlp();
  const shared = () => {
    if (!sizes.hasPart('shared_router')) return 0;
    const { to, back } = sharedLinears(sizes);
    return ofBase(to) + ofBase(back) + copies(linearOf(sizes, 'shared_router'));
  };
  const experts = quantization === null ? 0 : model.num_experts * mlp();
  return attention + copies(linearOf(sizes, 'router')) + experts + shared();
}

const sumOf = ({ to }: Linear, bytes: (columns: number) => number) =>
  to.reduce((sum, columns) => sum + bytes(columns), 0);

/** In bf16, words of an even depth are pairs of elements with every instruction set. */
function packed(sizes: Sizes, depth: number, columns: number): number {
  const pairs = sizes.element === 2 && depth % 2 === 0;
  return 4 * (pairs ? depth / 2 : sizes.steps(depth)) * roundUp(columns, PANEL);
}

function packedCodes({ inFirst }: Sizes, format: 'nf4' | 'int8', depth: number, columns: number): number {
  const block = CODE_BYTES[format] + 4 * PANEL * (inFirst ? 2 : 1);
  return Math.ceil(columns / PANEL) * Math.ceil(depth / CODE_DEPTH) * block;
}
