/** Memory of one layer: the formulas of native/model/transformer/layer.cc, attention.cc, qk_norm.cc and the norms. */
import { factOf } from '../model/parts.js';
import {
  adapterGradients,
  gradientOperand,
  type Linear,
  linearOf,
  lowRankRows,
  magnitudeFactors,
  type PartMemory,
  weightGradients,
} from './linear-memory.js';
import { mlpMemory } from './mlp-memory.js';
import type { Sizes } from './sizes.js';

/** `kept` excludes the layer's input. */
export function layerMemory(sizes: Sizes): PartMemory {
  const { hidden, model } = sizes;
  const qkv = linearOf(sizes, 'qkv', 'query', 'key', 'value');
  const attention = attentionMemory(sizes, qkv);
  const mlp = mlpMemory(sizes, qkv);
  const changesOutputs =
    model.residual_dropout > 0 ||
    model.residual_scale !== 1 ||
    model.parallel_residual ||
    sizes.hasPart('mlp_output_norm');
  const streams = (changesOutputs ? 3 : 2) * sizes.tensor(hidden);
  const norms = LAYER_NORMS.filter((part) => sizes.hasPart(part)).length;
  const normGradients = trainsNorms(sizes) ? (model.norm === 'layer' ? 8 : 4) * hidden : 0;
  return {
    weights: attention.weights + mlp.weights,
    kept: (1 + norms) * sizes.tensor(hidden) + norms * normKept(sizes) + attention.kept + mlp.kept,
    work: streams + normGradients + attention.work + mlp.work,
  };
}

const LAYER_NORMS = [
  'input_norm',
  'attention_output_norm',
  'post_attention_norm',
  'mlp_output_norm',
] as const;
const NORMS = [...LAYER_NORMS, 'norm'] as const;

/** Returns whether a norm of the residual stream is trained. */
export function trainsNorms(sizes: Sizes): boolean {
  return NORMS.some((part) => sizes.trainsPart(part));
}

/** Returns what a norm keeps for its backward pass: a deviation for each row, and a mean with LayerNorm. */
export function normKept({ rows, model }: Sizes): number {
  return (model.norm === 'layer' ? 8 : 4) * rows;
}

function attentionMemory(sizes: Sizes, qkv: Linear): PartMemory {
  const { query, rows, model } = sizes;
  const output = linearOf(sizes, 'output');
  const { rowsAtOnce } = sizes;
  const tensors = sizes.tensor(sizes.qkv) + sizes.tensor(query);
  const low = (count: number) => lowRankRows(sizes, qkv, count) + lowRankRows(sizes, output, count);
  return {
    weights: magnitudeFactors(sizes, qkv) + magnitudeFactors(sizes, output),
    kept: tensors + low(rows) + 4 * rows * model.num_attention_heads + keptByQkNorm(sizes),
    work:
      tensors +
      low(rowsAtOnce) +
      gradientOperand(sizes, qkv, rowsAtOnce) +
      gradientOperand(sizes, output, rowsAtOnce) +
      weightGradients(sizes, qkv, rowsAtOnce) +
      weightGradients(sizes, output, rowsAtOnce) +
      adapterGradients(sizes, qkv, rowsAtOnce) +
      adapterGradients(sizes, output, rowsAtOnce) +
      4 * (sizes.trainsPart('query_norm') ? factOf(model, 'query_norm_size') : 0) +
      4 * (sizes.trainsPart('key_norm') ? factOf(model, 'key_norm_size') : 0),
  };
}

/** Returns the bytes of queries and keys before the norm, and a deviation of each norm. */
function keptByQkNorm(sizes: Sizes): number {
  const { query, keyValue, rows, model } = sizes;
  if (!model.qk_norm) return 0;
  const norms = query / factOf(model, 'query_norm_size') + keyValue / factOf(model, 'key_norm_size');
  return sizes.tensor(query + keyValue) + 4 * rows * norms;
}
