/**
 * GPU memory of attention by cuDNN besides the tensors (native/kernels/attention/cuda): the workspace of a
 * backward, and the operands of a trial. Where cuDNN is missing, attention needs less; so it does on GPUs
 * whose backward it does not compute.
 */
import { roundUp, type Sizes } from './sizes.js';

/** Scores of a backward that are in memory at once (cudnn_attention.h). */
const MAX_SCORE_BYTES = 2 ** 30;
/** Sequences are padded to this in scores, whose elements have 2 bytes. */
const SCORE_TILE = 64;
/** Rest of a workspace (cudnn_call.cc), and rounding of the operands of a trial, which are five. */
const REST = 4096 + 5 * 512;
const MAX_WIDTH = 256;
const WIDTH_UNIT = 8;

export function attentionMemory(sizes: Sizes): number {
  const { rows, element, model, query, qkv, spec } = sizes;
  if (element === 4 || model.head_dim % WIDTH_UNIT !== 0 || model.head_dim > MAX_WIDTH) return 0;
  const rowValues = 4 * rows * model.num_attention_heads;
  const trial = rows * (sizes.row(qkv) + 2 * sizes.row(query)) + rowValues + 4 * spec.train.sequence_length;
  return workspace(sizes) + rowValues + trial + REST;
}

/** Returns the scores of the largest part of a backward, and its gradients of keys and values of each query head. */
function workspace({ spec, model, sequences: batch }: Sizes): number {
  const { sequence_length: length } = spec.train;
  const { num_attention_heads: heads, num_key_value_heads: keyHeads, head_dim: width } = model;
  const ofHead = 2 * roundUp(length, SCORE_TILE) ** 2;
  const group = heads / keyHeads;
  const together = largestDivisor(batch, MAX_SCORE_BYTES / (heads * ofHead));
  const parts =
    together > 0 ? together * heads : group * largestDivisor(keyHeads, MAX_SCORE_BYTES / (group * ofHead));
  return parts * (ofHead + (group > 1 ? 4 * length * width : 0));
}

/** Returns the largest divisor of `count` that is at most `most`, or 0. */
function largestDivisor(count: number, most: number): number {
  for (let divisor = Math.min(count, Math.floor(most)); divisor > 0; divisor -= 1)
    if (count % divisor === 0) return divisor;
  return 0;
}
