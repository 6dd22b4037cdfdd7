/** What one layer allocates: the formulas beside the allocations of its blocks in native/model. */
import type { Sizes } from './sizes.js';

export interface LayerMemory {
  /** Weights in the order in which matrix products read them, forward and backward. */
  weights: number;
  /** What the forward pass leaves for the backward pass, without the layer's input. */
  kept: number;
  /** Work space of the backward pass; one for all layers. */
  work: number;
}

/** One matrix product, or several from the same input. */
interface Linear {
  from: number;
  /** Columns that come out of each. */
  to: readonly number[];
  bias: boolean;
}

export function layerMemory(sizes: Sizes): LayerMemory {
  const { hidden, inner, query, keyValue, model } = sizes;
  const mlp = { from: hidden, to: sizes.widened === inner ? [inner] : [inner, inner], bias: model.mlp_bias };
  const linears = {
    qkv: {
      from: hidden,
      // GPT-2 has queries, keys and values in one matrix.
      to: sizes.inFirst ? [sizes.qkv] : [query, keyValue, keyValue],
      bias: model.qkv_bias,
    },
    output: { from: query, to: [hidden], bias: model.output_bias },
    mlp,
    outer: { from: inner, to: [hidden], bias: model.mlp_bias },
  };
  const all: Linear[] = Object.values(linears);
  return {
    weights: all.reduce((sum, linear) => sum + packedWeights(sizes, linear), 0),
    kept: kept(sizes),
    work: work(sizes, linears),
  };
}

/** What a norm leaves for its backward pass: a deviation for each row, and with LayerNorm a mean. */
export function normKept({ rows, model }: Sizes): number {
  return (model.norm === 'layer' ? 8 : 4) * rows;
}

function kept(sizes: Sizes): number {
  const { hidden, inner, query, rows, model } = sizes;
  const tensors =
    3 * sizes.tensor(hidden) +
    sizes.tensor(sizes.qkv) +
    sizes.tensor(query) +
    sizes.tensor(sizes.widened) +
    sizes.tensor(inner);
  return tensors + 2 * normKept(sizes) + 4 * rows * model.num_attention_heads + keptByQkNorm(sizes);
}

/** Queries and keys before they are normed, and a deviation of each head. */
function keptByQkNorm(sizes: Sizes): number {
  const { query, keyValue, rows, model } = sizes;
  if (!model.qk_norm) return 0;
  return sizes.tensor(query + keyValue) + 4 * rows * (model.num_attention_heads + model.num_key_value_heads);
}

function work(
  sizes: Sizes,
  { qkv, output, mlp, outer }: Record<'qkv' | 'output' | 'mlp' | 'outer', Linear>,
): number {
  const { hidden, inner, query, model } = sizes;
  const tensors =
    (model.residual_dropout > 0 ? 3 : 2) * sizes.tensor(hidden) +
    sizes.tensor(sizes.qkv) +
    sizes.tensor(query) +
    sizes.tensor(sizes.widened) +
    sizes.tensor(inner);
  // The MLP works in attention's operand where both are of the same size.
  const isShared = operandColumns(sizes, mlp) === operandColumns(sizes, qkv);
  const operands = [qkv, output, outer, ...(isShared ? [] : [mlp])].map((linear) =>
    sizes.packed(sizes.rows, operandColumns(sizes, linear)),
  );
  const gradients = [qkv, output, mlp, outer].map(weightGradients);
  const norms = (model.norm === 'layer' ? 8 : 4) * hidden + (model.qk_norm ? 8 * model.head_dim : 0);
  return [...operands, ...gradients].reduce((sum, bytes) => sum + bytes, tensors + norms);
}

/** Columns of what is packed for the gradient of the weights: the input, or for (in, out) weights the output. */
function operandColumns({ inFirst }: Sizes, { from, to }: Linear): number {
  return inFirst ? columnsOut(to) : from;
}

function packedWeights(sizes: Sizes, { from, to }: Linear): number {
  const forward = to.reduce((sum, columns) => sum + sizes.packed(from, columns), 0);
  return forward + sizes.packed(columnsOut(to), from);
}

function weightGradients({ from, to, bias }: Linear): number {
  return 4 * columnsOut(to) * (from + (bias ? 1 : 0));
}

function columnsOut(to: readonly number[]): number {
  return to.reduce((sum, columns) => sum + columns, 0);
}
