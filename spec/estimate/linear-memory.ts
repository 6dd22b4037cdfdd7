/** Matrix products with weights: the formulas of native/model/layers/linear.cc. */
import type { Sizes } from './sizes.js';

/** One matrix product, or several from the same input. */
export interface Linear {
  from: number;
  /** Columns that come out of each. */
  to: readonly number[];
  bias: boolean;
}

/** What a part of a layer allocates. */
export interface PartMemory {
  /** Packed copies of weights, forward and backward; only experts have them, for products of few rows. */
  weights: number;
  /** What the forward pass leaves for the backward pass. */
  kept: number;
  /** Work space of the backward pass; one for all layers. */
  work: number;
}

export function packedWeights(sizes: Sizes, { from, to }: Linear): number {
  const forward = to.reduce((sum, columns) => sum + sizes.packed(from, columns), 0);
  return forward + sizes.packed(columnsOut(to), from);
}

export function weightGradients({ from, to, bias }: Linear): number {
  return 4 * columnsOut(to) * (from + (bias ? 1 : 0));
}

/** What is packed for the gradient of the weights: the input, or for (in, out) weights the gradient of the output. */
export function gradientOperand(sizes: Sizes, linear: Linear, rows = sizes.rows): number {
  return sizes.packed(rows, operandColumns(sizes, linear));
}

/** The same, where it may lie in the operand of an earlier product; it does when both are of the same size. */
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
