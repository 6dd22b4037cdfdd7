/** MLPs: the formulas of native/model/mlp/dense_mlp.cc, moe_mlp.cc, held_experts.cc and shared_expert.cc. */
import {
  adapterGradients,
  columnsOut,
  gradientOperand,
  type Linear,
  linearOf,
  lowRankRows,
  magnitudeFactors,
  type PartMemory,
  packedWeights,
  sharedOperand,
  weightGradients,
} from './linear-memory.js';
import type { Sizes } from './sizes.js';

/** @param earlier a product whose operand the MLP may reuse */
export function mlpMemory(sizes: Sizes, earlier: Linear): PartMemory {
  return sizes.model.num_experts > 0 ? expertsMemory(sizes, earlier) : denseMemory(sizes, earlier);
}

const linearsOf = (sizes: Sizes) => ({
  to: linearOf(sizes, 'gate_up', 'gate', 'up'),
  back: linearOf(sizes, 'down'),
});

/** Returns the products of an expert for all tokens. */
export const sharedLinears = (sizes: Sizes) => ({
  to: linearOf(sizes, 'shared_gate', 'shared_up'),
  back: linearOf(sizes, 'shared_down'),
});

function denseMemory(sizes: Sizes, earlier: Linear): PartMemory {
  return mlpOf(sizes, earlier, linearsOf(sizes));
}

/** GELU's gradient is computed in place; a gate has one more tensor. */
function mlpOf(sizes: Sizes, earlier: Linear, { to, back }: { to: Linear; back: Linear }): PartMemory {
  const { rowsAtOnce: rows } = sizes;
  const isGated = columnsOut(to) > back.from;
  const [widened, inner] = [rows * sizes.row(columnsOut(to)), rows * sizes.row(back.from)];
  const low = lowRankRows(sizes, to, rows) + lowRankRows(sizes, back, rows);
  return {
    weights: magnitudeFactors(sizes, to) + magnitudeFactors(sizes, back),
    kept: widened + inner + low,
    work:
      (isGated ? widened + inner : inner) +
      low +
      adapterGradients(sizes, to, rows) +
      adapterGradients(sizes, back, rows) +
      sharedOperand(sizes, to, earlier, rows) +
      gradientOperand(sizes, back, rows) +
      weightGradients(sizes, to, rows) +
      weightGradients(sizes, back, rows),
  };
}

/**
 * Each token has a row for each of its experts. The operands of an expert grow with its rows, which depend on
 * the tokens; the maximum, every token, is counted. Experts that are spread over ranks are counted with an
 * even share of all rows for each rank. Of the row indices a GPU keeps half in a layer. In the backward pass
 * it keeps at most the other half once. With spread experts it also keeps two orders of their rows.
 */
function expertsMemory(sizes: Sizes, earlier: Linear): PartMemory {
  const routed = routedMemory(sizes, earlier);
  if (!sizes.hasPart('shared_router')) return routed;
  const shared = sharedMemory(sizes, earlier);
  return {
    weights: routed.weights + shared.weights,
    kept: routed.kept + shared.kept,
    work: routed.work + shared.work,
  };
}

/** Returns the memory of an expert for all tokens: the formulas of shared_expert.cc. */
function sharedMemory(sizes: Sizes, earlier: Linear): PartMemory {
  const { rowsAtOnce } = sizes;
  const router = linearOf(sizes, 'shared_router');
  const mlp = mlpOf(sizes, earlier, sharedLinears(sizes));
  return {
    weights: mlp.weights + magnitudeFactors(sizes, router),
    kept: mlp.kept + sizes.tensor(sizes.hidden) + sizes.tensor(1) + lowRankRows(sizes, router),
    work:
      mlp.work +
      sizes.tensor(1) +
      lowRankRows(sizes, router, rowsAtOnce) +
      adapterGradients(sizes, router, rowsAtOnce) +
      sharedOperand(sizes, router, earlier, rowsAtOnce) +
      weightGradients(sizes, router, rowsAtOnce),
  };
}

function routedMemory(sizes: Sizes, earlier: Linear): PartMemory {
  const { hidden, rows, rowsAtOnce, expertRows, model, expertSets } = sizes;
  const { num_experts: experts, experts_per_token: chosen } = model;
  const { to, back } = linearsOf(sizes);
  const router = linearOf(sizes, 'router');
  const inner = expertRows * (sizes.row(sizes.widened) + sizes.row(sizes.inner));
  const logits = sizes.tensor(experts);
  const low = lowRankRows(sizes, to, expertRows) + lowRankRows(sizes, back, expertRows);
  const held = experts / expertSets;
  const orders = sizes.onGpu ? 8 * expertRows + 4 * (held + 1) : 0;
  const plan = expertSets === 1 ? 0 : 8 * (4 * expertSets + experts + held + 1) + orders;
  const operandRows = Math.ceil(rows * Math.max(1, (expertSets * chosen) / experts));
  return {
    weights:
      held * (packedWeights(sizes, to) + packedWeights(sizes, back)) +
      held * (magnitudeFactors(sizes, to) + magnitudeFactors(sizes, back)) +
      magnitudeFactors(sizes, router),
    kept:
      inner +
      low +
      lowRankRows(sizes, router) +
      (expertRows + chosen * rows) * sizes.row(hidden) +
      logits +
      4 * rows * (experts + 2 * chosen) +
      8 * (2 * rows * chosen + experts + 1) +
      plan,
    work:
      inner +
      low +
      lowRankRows(sizes, router, rowsAtOnce) +
      adapterGradients(sizes, router, rowsAtOnce) +
      adapterGradients(sizes, to, operandRows) +
      adapterGradients(sizes, back, operandRows) +
      // Of an expert's gradients, beside those of all rows.
      lowRankRows(sizes, to, 1) +
      lowRankRows(sizes, back, 1) +
      (chosen + 1) * sizes.tensor(hidden) +
      logits +
      4 * rows * chosen +
      sharedOperand(sizes, router, earlier, rowsAtOnce) +
      gradientOperand(sizes, to, operandRows) +
      gradientOperand(sizes, back, operandRows) +
      weightGradients(sizes, router, rowsAtOnce) +
      weightGradients(sizes, to) +
      weightGradients(sizes, back),
  };
}
