/** Schemas of fields that several families have: what their readers do not say. */
import type { FieldSchema } from '../field-facts.js';

const nullable = (schema: FieldSchema) => ({ oneOf: [schema, { type: 'null' }] });

const scaling = (name: string) => nullable({ $ref: `model-config.yaml#/${name}` });

export const LONGROPE_SCALING = scaling('LongropeScaling');

export const FIELDS: Readonly<Record<string, FieldSchema>> = {
  hidden_size: { description: 'Width of the residual stream.' },
  intermediate_size: { description: 'Width inside the MLP; even.' },
  num_hidden_layers: { description: 'Number of transformer layers.' },
  num_attention_heads: { description: 'Number of query heads.' },
  num_key_value_heads: {
    // null is read as the number of query heads.
    type: 'integer',
    description: 'Number of key and value heads; it divides `num_attention_heads`.',
  },
  head_dim: { description: 'Width of one head; even.' },
  vocab_size: { description: 'Size of the vocabulary.' },
  max_position_embeddings: { description: 'Maximum sequence length of the model.' },
  rms_norm_eps: { description: 'Epsilon of RMSNorm.' },
  rope_theta: { description: 'Base of the rotary frequencies.' },
  rope_scaling: scaling('RopeScaling'),
  partial_rotary_factor: {
    description: 'Share of the elements of a head that have rotary positions, the first ones.',
  },
  tie_word_embeddings: { description: 'Input and output embedding share one matrix.' },
  initializer_range: { description: 'Standard deviation of the initial weights.' },
  attention_dropout: { description: 'Dropout of the attention probabilities in training.' },
  resid_pdrop: { description: "Dropout of a block's addition to the residual stream in training." },
  hidden_act: { description: 'The activation of the MLP.' },
  attention_bias: { description: 'The projections of attention have biases.' },
  mlp_bias: { description: 'The projections of the MLP have biases.' },
  sliding_window: {
    description: 'Number of tokens that a query attends to, including itself; null: all before it.',
  },
  use_sliding_window: { description: 'Layers have the sliding window.' },
  max_window_layers: { description: 'Index of the first layer with a sliding window by default.' },
  layer_types: { description: 'Kind of attention of each layer.' },
  num_local_experts: { description: 'Number of experts.' },
  num_experts: { description: 'Number of experts.' },
  moe_intermediate_size: { description: 'Width inside an expert; even.' },
  norm_topk_prob: {
    description: 'The probabilities of the chosen experts are divided by their sum.',
  },
  num_experts_per_tok: { description: 'Number of experts to which each token is sent.' },
  output_router_logits: { description: 'The auxiliary loss is part of the loss.' },
  router_aux_loss_coef: { description: 'Factor of the auxiliary loss.' },
};
