import type { ResolvedJobSpec } from '../../contracts/index.js';
import { architectureOf } from '../model/families/families.js';
import { countOf } from '../model/params.js';
import { preferencesOf } from '../objective.js';
import { type SplitKind, splitParams } from '../resolve/param-groups.js';

/** Forward pass, plus the backward pass: for scores and weighted values twice the same. */
const ATTENTION_PASSES = 3;
/**
 * Products with a weight: forward pass and gradient of the input. The gradient of the weight costs the same, unless it
 * is frozen.
 */
const PRODUCTS = 2;

/** Returns the FLOPs of training for each token. */
export function flopsPerToken(spec: ResolvedJobSpec): number {
  const { model, train } = spec;
  const architecture = architectureOf(model.config);
  const { num_attention_heads, head_dim, layer_windows } = architecture;
  const { num_experts, experts_per_token, tie_word_embeddings } = architecture;
  const kinds = splitParams(spec).filter(
    // Input embeddings are looked up, not multiplied.
    (_, index) => index > 0 || tie_word_embeddings,
  );
  const met = (count: (split: SplitKind) => number) =>
    kinds.reduce((sum, split) => {
      const all = count(split) * split.kind.numel;
      return sum + (split.kind.experts === null ? all : (all * experts_per_token) / num_experts);
    }, 0);
  const multiplied = met(({ kind }) => countOf(kind));
  const trained = met(({ kind, numFrozen }) => countOf(kind) - numFrozen);
  const seen = layer_windows.map((window) => Math.min(window || Infinity, train.sequence_length / 2));
  // Scores, and the weighted values.
  const attention = seen.reduce((sum, tokens) => sum + 4 * num_attention_heads * head_dim * tokens, 0);
  const scoring = scoringPasses(train) * (2 * multiplied + attention);
  return 2 * (PRODUCTS * multiplied + trained) + ATTENTION_PASSES * attention + scoring;
}

/**
 * Returns the forward passes of an objective besides the training: under the reference, and those of KTO's mismatched
 * sequences.
 */
function scoringPasses(train: ResolvedJobSpec['train']): number {
  const objective = preferencesOf(train);
  const underReference = objective?.reference === 'base' ? 1 : 0;
  return objective?.type === 'kto' ? 2 * underReference + 1 : underReference;
}
