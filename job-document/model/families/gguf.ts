/** What llama.cpp lacks in several families. */
import type { Architecture } from '../../../contracts/architecture.js';

type Unsupported = (model: Architecture) => string | null;

export const ggufGelu =
  (type: string): Unsupported =>
  ({ mlp }) =>
    mlp === 'gelu' ? `llama.cpp has the activation gelu_new for ${type}, not gelu` : null;

export const ggufBiases =
  (type: string): Unsupported =>
  ({ output_bias }) =>
    output_bias ? `llama.cpp has no biases for ${type} (attention_bias)` : null;

export const ggufWideHeads =
  (type: string): Unsupported =>
  ({ head_dim, num_attention_heads, hidden_size }) =>
    head_dim * num_attention_heads === hidden_size
      ? null
      : `llama.cpp's ${type} needs head_dim × num_attention_heads = hidden_size, and ${head_dim} × ${num_attention_heads} is not ${hidden_size}`;
