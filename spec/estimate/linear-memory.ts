/** Matrix products with weights: the formulas of native/model/layers/linear.cc. */
import type { Sizes } from './sizes.js';

/** Matrix product, or several of the same input. */
export interface Linear {
  from: number;
  /** Output columns of each. */
  to: readonly number[];
  bias: boolean;
}

/** Memory of a part of a layer. */
export interface PartMemory {
  /** Packed copies of weights, forward and backward; only experts have them, for products of few rows. */
  weights: number;
  /** Tensors kept for the backward pass. */
  kept: number;
  /** Workspace of the backward pass, shared by all layers. */
  work: number;
}

export function packedWeights(sizes: Sizes, { from, to }: Linear): number {
  const forward = to.reduce((sum, columns) => sum + sizes.packed(from, columns), 0);
  return forward + sizes.packed(columnsOut(to), from);
}

export function weightGradients(sizes: Sizes, { from, to, bias }: Linear): number {
  return columnsOut(to) * (sizes.gradientElement * from + (bias ? 4 : 0));
}

/**
 * Returns the packed operand of the weight gradient: the input, or for (in, out) weights the output gradient.
 */
export function gradientOperand(sizes: Sizes, linear: Linear, rows = sizes.rows): number {
  return sizes.packed(rows, operandColumns(sizes, linear));
}

/** Returns the same, or 0 if it can reuse the operand of an earlier product of the same size. */
export function sharedOperand(sizes: Sizes, linear: Linear, earlier: Linear): number {
  const isShared = operandColumns(sizes, linear) === operandColumns(sizes, earlier);
  return isShared ? 0 : gradientOperand(sizes, linear);
}

function operandColumns({ inFirst }: Sizes, { from, to }: Linear): number {
  return inFirst ? columnsOut(to) : from;
}

function columnsOut(to: readonly number[]): number {
  return to.reduce((sum, columns) => sum + columns, 0);
}
