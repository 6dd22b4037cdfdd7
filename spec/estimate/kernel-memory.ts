/**
 * What kernels take of a GPU's memory besides the tensors: the most that the CUDA kernels in native/kernels ask for at once. The tensors are those
 * of the CPU; this is not among the parts that a trainer counts, and has not been measured on a GPU.
 */
import type { Sizes } from './sizes.js';

/** Work space of cuBLASLt (matmuls.cc). */
const WORKSPACE_BYTES = 32 * 2 ** 20;
/** Rows that are summed at once, where a whole column is wanted (column_sums.cuh). */
const SUMMED_ROWS = 64;
/** LayerNorm wants two sums of each column. */
const MOST_SUMS = 2;

export function kernelMemory(sizes: Sizes): number {
  return WORKSPACE_BYTES + sumsOfProducts(sizes) + temporary(sizes) + indices(sizes);
}

/** A product with several parameters side by side is summed in fp32 and rounded once (gemm.cc). */
function sumsOfProducts({ rows, hidden, element, inFirst, model, expertSets }: Sizes): number {
  if (inFirst || element === 4) return 0;
  const share = model.num_experts === 0 ? 1 : (expertSets * model.experts_per_token) / model.num_experts;
  return 4 * Math.ceil(rows * Math.max(1, share)) * hidden;
}

/** Of one kernel at a time: the row products of attention's backward pass, or partial sums over rows. */
function temporary({ rows, hidden, widened, qkv, model }: Sizes): number {
  const parts = Math.ceil(rows / SUMMED_ROWS);
  return 4 * Math.max(rows * model.num_attention_heads, MOST_SUMS * parts * Math.max(hidden, widened, qkv));
}

/** Tokens, targets, and the orders in which the embeddings' backward passes sum: by token, and by learned position. */
function indices({ rows, model }: Sizes): number {
  const orders = model.positions === 'learned' ? 2 : 1;
  return 4 * (2 * rows + orders * (2 * rows + 1));
}
