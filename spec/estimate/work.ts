import type { ResolvedJobSpec } from '../../contracts/index.js';
import { architectureOf } from '../model/families/families.js';
import { countOf, paramKinds } from '../model/params.js';

/** Forward pass, plus the backward pass for the gradients of inputs and of weights at the same cost each. */
const PASSES = 3;

/** Returns the FLOPs of training for each token. */
export function flopsPerToken({ model, train }: ResolvedJobSpec): number {
  const architecture = architectureOf(model.config);
  const { hidden_size, num_attention_heads, head_dim, vocab_size, layer_windows } = architecture;
  const { num_experts, experts_per_token, tie_word_embeddings } = architecture;
  const met = paramKinds(architecture).reduce((sum, kind) => {
    const all = countOf(kind) * kind.numel;
    return sum + (kind.experts === null ? all : (all * experts_per_token) / num_experts);
  }, 0);
  // Input embeddings are looked up, not multiplied.
  const multiplied = met - (tie_word_embeddings ? 0 : vocab_size * hidden_size);
  const seen = layer_windows.map((window) => Math.min(window || Infinity, train.sequence_length / 2));
  // Scores, and the weighted values.
  const attention = seen.reduce((sum, tokens) => sum + 4 * num_attention_heads * head_dim * tokens, 0);
  return PASSES * (2 * multiplied + attention);
}
