/** Matrix products with weights: the formulas of native/model/layers/linear.cc and linear_adapter.cc. */
import { factOf, type MatrixPart, PARTS } from '../model/parts.js';
import type { Sizes } from './sizes.js';

/** Matrix product, or several of the same input. */
export interface Linear {
  from: number;
  /** Output columns of each. */
  to: readonly number[];
  /** Their modules; `{}` stands for numbers of layers and experts. */
  names: readonly string[];
}

/** Returns the product of those parts that the family has. All parts have the same input. */
export function linearOf({ names, model }: Sizes, first: MatrixPart, ...others: MatrixPart[]): Linear {
  const here = [first, ...others].flatMap((part) => {
    const module = names.modules[part];
    return module === undefined ? [] : [{ module, columns: factOf(model, PARTS[part].out) }];
  });
  return {
    from: factOf(model, PARTS[first].in),
    to: here.map(({ columns }) => columns),
    names: here.map(({ module }) => module),
  };
}

/** Memory of a part of a layer. */
export interface PartMemory {
  /**
   * Packed copies of weights, forward and backward; only experts have them, for products of few rows. And the factors
   * of adapters with magnitudes.
   */
  weights: number;
  /** Tensors kept for the backward pass. */
  kept: number;
  /** Workspace of the backward pass, shared by all layers. */
  work: number;
}

export function packedWeights(sizes: Sizes, { from, to }: Linear): number {
  // Quantized matrices are used in place.
  if (sizes.model.quantization !== null) return 0;
  const forward = to.reduce((sum, columns) => sum + sizes.packed(from, columns), 0);
  return forward + sizes.packed(columnsOut({ to }), from);
}

/** Returns the gradients of what is trained in any layer. @param rows that a product adds up at once */
export function weightGradients(sizes: Sizes, { from, to, names }: Linear, rows = sizes.rows): number {
  return to.reduce((sum, columns, part) => {
    const weight = sizes.trains(`${names[part]}.weight`) ? gradientElement(sizes, rows) * from : 0;
    const bias = sizes.trains(`${names[part]}.bias`) ? 4 : 0;
    return sum + columns * (weight + bias);
  }, 0);
}

/** Returns the bytes of an element of a weight's gradient. Products that add to it do so in fp32. */
function gradientElement(sizes: Sizes, rows: number): number {
  return rows < sizes.rows ? 4 : sizes.gradientElement;
}

/**
 * Returns the packed operand of the weight gradient: the input, or for (in, out) weights the output gradient; 0 if all
 * are frozen.
 */
export function gradientOperand(sizes: Sizes, linear: Linear, rows = sizes.rows): number {
  return trainsWeights(sizes, linear) ? sizes.packed(rows, operandColumns(sizes, linear)) : 0;
}

function trainsWeights(sizes: Sizes, { names }: Linear): boolean {
  return names.some((name) => sizes.trains(`${name}.weight`));
}

/** Returns the same, or 0 if it can reuse the operand of an earlier product of the same size. */
export function sharedOperand(sizes: Sizes, linear: Linear, earlier: Linear, rows: number): number {
  const isShared =
    trainsWeights(sizes, earlier) && operandColumns(sizes, linear) === operandColumns(sizes, earlier);
  return isShared ? 0 : gradientOperand(sizes, linear, rows);
}

/**
 * Returns the tensors of a Linear's adapters: the low-rank rows, and in the backward pass their gradients; with
 * magnitudes behind the rows of products.
 */
export function lowRankRows(sizes: Sizes, linear: Linear, rows = sizes.rows): number {
  const columns = adaptedOutputs(sizes, linear).length * sizes.rank;
  return columns === 0 ? 0 : rows * sizes.row(columns + scaledColumns(sizes, linear));
}

/** Returns the norms of outputs, their inverses and the factors of outputs. */
export function magnitudeFactors(sizes: Sizes, linear: Linear): number {
  return 12 * scaledColumns(sizes, linear);
}

/** Returns the output columns of a Linear with magnitudes, in which all columns have a factor. */
function scaledColumns(sizes: Sizes, linear: Linear): number {
  return sizes.magnitudes && adaptedOutputs(sizes, linear).length > 0 ? columnsOut(linear) : 0;
}

/** Returns the gradients of a Linear's adapters, and the operands of their products. */
export function adapterGradients(sizes: Sizes, linear: Linear, rows = sizes.rows): number {
  const outputs = adaptedOutputs(sizes, linear);
  if (outputs.length === 0) return 0;
  const { rank, magnitudes } = sizes;
  return outputs.reduce(
    (sum, columns) =>
      sum +
      gradientElement(sizes, rows) * rank * (linear.from + columns) +
      sizes.packed(rows, rank) +
      (magnitudes ? 4 * columns : 0),
    sizes.packed(rows, linear.from),
  );
}

/** Returns the output columns of the matrices with an adapter. */
function adaptedOutputs(sizes: Sizes, { to, names }: Linear): number[] {
  return to.filter((_, part) => sizes.isAdapted(`${names[part]}`));
}

function operandColumns({ inFirst }: Sizes, { from, to }: Linear): number {
  return inFirst ? columnsOut({ to }) : from;
}

export function columnsOut({ to }: Pick<Linear, 'to'>): number {
  return to.reduce((sum, columns) => sum + columns, 0);
}
