/**
 * Memory of one rank's model besides its parameters: the formulas of native/model's allocations (linear.cc,
 * attention.cc, qk_norm.cc, dense_mlp.cc, row_exchange.cc, layer.cc, layer_stack.cc, token_embedding.cc,
 * loss_head.cc, transformer.cc), and sampling-memory.ts.
 */
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { takesCalls } from '../objective.js';
import { kernelMemory } from './kernel-memory.js';
import { layerMemory, normKept } from './layer-memory.js';
import { logitRows } from './logit-rows.js';
import { sampledSizes, samplingMemory } from './sampling-memory.js';
import { CACHE_LINE, type Machine, PANEL, roundUp, Sizes } from './sizes.js';

export interface ModelMemory {
  /** Activations, activation gradients, and workspace of kernels; in a session also the KV cache of a sample. */
  activations: number;
  /**
   * Copies of weights in the order in which matrix products of few rows read them: of the head and the experts, and in
   * a session of all matrices.
   */
  packed_weights: number;
}

/** Query rows of an attention block, and blocks that one thread processes at once. */
const QUERY_ROWS = 64;
const STEP_BLOCKS = 2;
/** Keys of a block. */
const KEY_ROWS = 256;
/** Tokens of long heads, per thread, whose operands attention holds at once. */
const TOKENS_PER_THREAD = 1024;
/** Workspace of a matrix product, per thread. */
const GEMM_SCRATCH = 1_454_080;

/** Returns the bytes of one rank, from its first backward pass on, and in a session its largest sample. */
export function modelMemory(spec: ResolvedJobSpec, machine: Machine): ModelMemory {
  const sizes = new Sizes(spec, machine);
  const { num_hidden_layers: layers, vocab_size: vocab } = sizes.model;
  const { hidden } = sizes;
  const layer = layerMemory(sizes);
  // Layers below the lowest that is trained count as one.
  const below = sizes.lowestTrainedLayer();
  const numInputs = layers - below + (below === 0 ? 0 : 1);
  // With checkpoints a layer keeps only its input; the rest is recomputed, for one layer at a time.
  const numKept = spec.train.activation_checkpointing ? 1 : numInputs;
  const isSession = takesCalls(spec.train);
  const sample = isSession ? samplingMemory(spec, machine) : { activations: 0, packed_weights: 0 };
  // Passes and samples use the workspace in turn.
  const passes = isSession ? [sizes, sampledSizes(spec, machine)] : [sizes];
  return {
    packed_weights: layers * layer.weights + sizes.packed(hidden, vocab) + sample.packed_weights,
    activations:
      numInputs * sizes.tensor(hidden) +
      numKept * layer.kept +
      layer.work +
      lossHead(sizes) +
      aroundLayers(sizes) +
      sample.activations +
      (sizes.onGpu ? Math.max(...passes.map(kernelMemory)) : kernelScratch(sizes, machine.threads)),
  };
}

function lossHead(sizes: Sizes): number {
  const { hidden, rows } = sizes;
  const vocab = sizes.model.vocab_size;
  const { logits, gradients } = logitRows(sizes);
  const operands = sizes.packed(gradients, hidden);
  return (
    logits * sizes.row(vocab, 4) +
    gradients * sizes.row(vocab) +
    4 * rows +
    (trainsHead(sizes) ? operands : 0)
  );
}

const trainsHead = (sizes: Sizes) => sizes.trainsPart(sizes.model.tie_word_embeddings ? 'embed' : 'head');

/** Returns the tensors before and after the layers, positions, and the gradients of the embeddings. */
function aroundLayers(sizes: Sizes): number {
  const { hidden, rows, spec, model } = sizes;
  const { head_dim, rotary_dim, vocab_size, max_position_embeddings } = model;
  const positions =
    model.positions === 'rope'
      ? (model.layer_rope.includes(2) ? 8 : 4) * spec.train.sequence_length * (rotary_dim || head_dim)
      : sizes.trainsPart('positions')
        ? 4 * max_position_embeddings * hidden
        : 0;
  const tokens = sizes.trainsPart('embed') || trainsHead(sizes) ? 4 * vocab_size * hidden : 0;
  // Rows sent to experts on other ranks, and the rows of the rank's own experts.
  const counts = sizes.onGpu ? 8 * model.num_experts : 0;
  const routed = sizes.expertSets === 1 ? 0 : 2 * sizes.expertRows * sizes.row(hidden) + counts;
  const widest = Math.max(
    sizes.tensor(Math.max(hidden, sizes.query)),
    sizes.rowsAtOnce * sizes.row(sizes.widest.inner),
  );
  const dropped = (model.adapter?.dropout ?? 0) > 0 ? widest : 0;
  return 3 * sizes.tensor(hidden) + 4 * rows + normKept(sizes) + positions + tokens + routed + dropped;
}

/**
 * Returns the maximum over kernels, which run one at a time; the operands of attention's heads are shared by
 * all threads.
 */
function kernelScratch(sizes: Sizes, threads: number): number {
  const { sequence_length } = sizes.spec.train;
  const heads = Math.min(
    sizes.sequences * sizes.model.num_key_value_heads,
    threads,
    Math.ceil((threads * TOKENS_PER_THREAD) / sequence_length) + 1,
  );
  return threads * Math.max(GEMM_SCRATCH, attentionRows(sizes)) + heads * attentionHead(sizes);
}

const inLines = (words: number[]) => words.reduce((sum, count) => sum + roundUp(4 * count, CACHE_LINE), 0);

/** Returns the memory of a key/value head in attention's backward pass. */
function attentionHead(sizes: Sizes): number {
  const length = sizes.spec.train.sequence_length;
  const dim = sizes.model.head_dim;
  const [lengthPanels, dimPanels] = [roundUp(length, PANEL), roundUp(dim, PANEL)];
  return inLines([
    lengthPanels * sizes.steps(dim),
    lengthPanels * sizes.steps(dim),
    dimPanels * sizes.steps(length),
    length * dim,
    length * dim,
    Math.ceil(length / KEY_ROWS),
  ]);
}

/** Returns the workspace of attention's backward pass, per thread. */
function attentionRows(sizes: Sizes): number {
  const length = sizes.spec.train.sequence_length;
  const dim = sizes.model.head_dim;
  const dimPanels = roundUp(dim, PANEL);
  const blockPanels = roundUp(Math.min(length, KEY_ROWS), PANEL);
  const scores = QUERY_ROWS * (blockPanels + 32);
  const block = [
    QUERY_ROWS * sizes.steps(dim),
    QUERY_ROWS * sizes.steps(dim),
    dimPanels * sizes.steps(QUERY_ROWS),
    dimPanels * sizes.steps(QUERY_ROWS),
    blockPanels * sizes.steps(QUERY_ROWS),
    blockPanels * sizes.steps(QUERY_ROWS),
    QUERY_ROWS * dim,
    QUERY_ROWS,
  ];
  return STEP_BLOCKS * inLines(block) + inLines([scores, scores, scores, scores]);
}
