/**
 * GPU memory of kernels besides the tensors: the maximum that native/kernels allocates at once. The
 * tensors are the same as on a CPU; this part is not counted by a trainer.
 */
import { attentionMemory } from './attention-memory.js';
import { trainsNorms } from './layer-memory.js';
import { logitRows } from './logit-rows.js';
import type { Sizes } from './sizes.js';

/** Workspace of cuBLASLt (matmuls.cc). */
const WORKSPACE_BYTES = 32 * 2 ** 20;
/** Rows that are summed at once for a column sum (column_sums.cuh). */
const SUMMED_ROWS = 64;
/** Bytes before and behind the operands of a trial, which are five at most. */
const TRIAL_ROUNDING = 5 * 512;
/** Checksums of a trial's threads, and the minimum of elements of a product that has them (noise_trial.cu). */
const [CHECKSUM_BYTES, MIN_CHECKED] = [8 * 64 * 256, 65_536];
/** Contiguous dimensions from this on are divided where they are not a multiple of 8 (divided_products.cc). */
const MIN_DIVIDED = 1024;
/** LayerNorm needs two sums of each column. */
const MAX_SUMS = 2;
/** Parts of the rows of a norm's backward pass, and the minimum of their rows (norm_backward.cu). */
const [MAX_NORM_PARTS, MIN_NORM_ROWS] = [512, 4];

export function kernelMemory(sizes: Sizes): number {
  const temporaryBytes = Math.max(
    temporary(sizes),
    attentionMemory(sizes),
    trialOfHead(sizes),
    trialOfLayer(sizes),
  );
  return WORKSPACE_BYTES + sumsOfProducts(sizes) + temporaryBytes + restored(sizes) + indices(sizes);
}

/**
 * Returns the largest right operand of a product that is restored from a quantized one: all matrices with one input
 * (restored_problem.cc).
 */
function restored({ hidden, widest, qkv, query, element, model }: Sizes): number {
  if (model.quantization === null) return 0;
  return element * Math.max(qkv * hidden, query * hidden, widest.widened * hidden, hidden * widest.inner);
}

/**
 * Returns the fp32 sums of a product in parts, which is rounded once (gemm.cc): with several adjacent parameters, or of
 * a vocabulary that is divided.
 */
function sumsOfProducts(sizes: Sizes): number {
  const { rows, hidden, element, inFirst, model, expertSets } = sizes;
  if (element === 4) return 0;
  const isDivided = model.vocab_size >= MIN_DIVIDED && model.vocab_size % 8 !== 0;
  const ofHead = isDivided ? 4 * logitRows(sizes).gradients * hidden : 0;
  if (inFirst) return ofHead;
  const share = model.num_experts === 0 ? 1 : (expertSets * model.experts_per_token) / model.num_experts;
  return Math.max(ofHead, 4 * Math.ceil(rows * Math.max(1, share)) * hidden);
}

/**
 * Returns the maximum over single kernels: the row products of attention's backward pass, or partial sums
 * over rows.
 */
function temporary(sizes: Sizes): number {
  const { rows, rowsAtOnce, hidden, widest, qkv, model } = sizes;
  const partsOf = (count: number) => Math.ceil(count / SUMMED_ROWS);
  const normParts = trainsNorms(sizes) ? Math.min(MAX_NORM_PARTS, Math.ceil(rows / MIN_NORM_ROWS)) : 0;
  return (
    4 *
    Math.max(
      rows * model.num_attention_heads,
      MAX_SUMS * partsOf(rows) * Math.max(hidden, qkv),
      MAX_SUMS * partsOf(rowsAtOnce) * widest.widened,
      MAX_SUMS * normParts * hidden,
    )
  );
}

/**
 * Returns the operands of a trial (ones_trial.cu). They replace the operands of a product of the head when its first
 * call tries an algorithm. The product is the forward, or the one for the gradient of the head's input or of its
 * weight.
 */
function trialOfHead(sizes: Sizes): number {
  const { hidden, element, rows } = sizes;
  const vocab = sizes.model.vocab_size;
  const { logits, gradients } = logitRows(sizes);
  const weight = element * vocab * hidden;
  const forward = logits * sizes.row(hidden) + weight;
  const toInput = gradients * sizes.row(vocab) + weight;
  // A last chunk that is shorter has a product of its own, which adds to the gradient of the chunks before. The number
  // of rows with a target varies.
  const toWeight =
    gradients * (sizes.row(vocab) + sizes.row(hidden)) + (rows > gradients ? 4 * vocab * hidden : 0);
  const largest = Math.max(logits * vocab, gradients * hidden, vocab * hidden);
  return Math.max(forward, toInput, toWeight) + TRIAL_ROUNDING + checksums(largest);
}

/** Returns the same for the products of a layer; an upper bound, since their operands differ. */
function trialOfLayer(sizes: Sizes): number {
  const { hidden, element, rows, rowsAtOnce, qkv, query } = sizes;
  const { widened } = sizes.widest;
  const widest = Math.max(hidden, widened, qkv);
  const matrices = Math.max(
    rows * (sizes.row(Math.max(hidden, qkv)) + sizes.row(Math.max(hidden, query))),
    rowsAtOnce * (sizes.row(Math.max(hidden, widened)) + sizes.row(hidden)),
  );
  // A gradient that products of several parts of the rows add to is in fp32.
  const ofWeight = rowsAtOnce < rows ? 4 : element;
  const weightAndBias = ofWeight * widest * (Math.max(hidden, query) + 1);
  const largest = Math.max(rows, hidden, query) * widest;
  return matrices + weightAndBias + sumsOfProducts(sizes) + TRIAL_ROUNDING + checksums(largest);
}

/** @param elements of the largest product */
function checksums(elements: number): number {
  return elements < MIN_CHECKED ? 0 : CHECKSUM_BYTES;
}

/**
 * Returns the bytes of tokens, targets, the rows with targets and their indices, and the summation orders of the
 * embeddings' backward passes: by token, and by learned position.
 */
function indices({ rows, model }: Sizes): number {
  const orders = model.positions === 'learned' ? 2 : 1;
  return 4 * (4 * rows + orders * (2 * rows + 1));
}
