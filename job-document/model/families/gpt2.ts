import { LLAMA_TRAITS } from '../../../contracts/architecture.js';
import type { ConfigReader } from '../reader.js';
import { everyLayer } from './decoder.js';
import type { Family } from './family.js';
import { GELU, readEvenHeads } from './gelu.js';
import { ggufGelu } from './gguf.js';
import { LIMITS } from './limits.js';

/**
 * Fields of classification heads, of the length in older versions, and one that always holds: scores are
 * computed in fp32.
 */
const UNUSED = [
  'reorder_and_upcast_attn',
  'n_ctx',
  'n_special',
  'predict_special_tokens',
  'output_past',
  'summary_type',
  'summary_use_proj',
  'summary_activation',
  'summary_proj_to_labels',
  'summary_first_dropout',
];

function refuseOtherAttention(reader: ConfigReader): void {
  reader.only('scale_attn_weights', [true], 'scores are always divided by the square root of the head width');
  reader.only('scale_attn_by_inverse_layer_idx', [false], 'scores are not scaled by layer');
}

export const GPT2: Family<'gpt2'> = {
  description: 'GPT-2, with LayerNorm, learned positions, biases and GELU.',
  causalLm: 'GPT2LMHeadModel',
  params: {
    naming: 'gpt2',
    in_first: true,
    modules: {
      embed: 'transformer.wte',
      positions: 'transformer.wpe',
      input_norm: 'transformer.h.{}.ln_1',
      qkv: 'transformer.h.{}.attn.c_attn',
      output: 'transformer.h.{}.attn.c_proj',
      post_attention_norm: 'transformer.h.{}.ln_2',
      up: 'transformer.h.{}.mlp.c_fc',
      down: 'transformer.h.{}.mlp.c_proj',
      norm: 'transformer.ln_f',
      head: 'lm_head',
    },
  },
  gguf: { name: 'gpt2', unsupported: ggufGelu('gpt2') },
  fields: {
    n_positions: { description: 'Maximum sequence length; every position has an embedding.' },
    n_embd: { description: 'Width of the residual stream.' },
    n_layer: { description: 'Number of transformer layers.' },
    n_head: { description: 'Number of heads.' },
    n_inner: { description: 'Width inside the MLP; even.' },
    activation_function: {
      description: 'The activation of the MLP. `gelu` is exact, `gelu_new` is its approximation by tanh.',
    },
    embd_pdrop: { description: 'Dropout of the embeddings in training.' },
    attn_pdrop: { description: 'Dropout of the attention probabilities in training.' },
    layer_norm_epsilon: { description: 'Epsilon of LayerNorm.' },
  },
  fieldNames: {
    hidden_size: 'n_embd',
    intermediate_size: 'n_inner',
    num_hidden_layers: 'n_layer',
    num_attention_heads: 'n_head',
    max_position_embeddings: 'n_positions',
    norm_eps: 'layer_norm_epsilon',
    embedding_dropout: 'embd_pdrop',
    attention_dropout: 'attn_pdrop',
    residual_dropout: 'resid_pdrop',
  },
  read(reader) {
    refuseOtherAttention(reader);
    reader.ignore(UNUSED);
    const { hidden: nEmbd, heads: nHead } = readEvenHeads(reader, {
      hidden: 'n_embd',
      heads: 'n_head',
      aliases: ['hidden_size', 'num_attention_heads'],
    });
    const dropout = (name: string) => reader.number(name, { ...LIMITS.dropout, fallback: 0.1 });
    return {
      model_type: 'gpt2',
      vocab_size: reader.integer('vocab_size', LIMITS.vocab),
      n_positions: reader.integer('n_positions', {
        ...LIMITS.positions,
        aliases: ['max_position_embeddings'],
        fallback: 1024,
      }),
      n_embd: nEmbd,
      n_layer: reader.integer('n_layer', { ...LIMITS.layers, aliases: ['num_hidden_layers'] }),
      n_head: nHead,
      n_inner: reader.integer('n_inner', {
        ...LIMITS.inner,
        fallback: 4 * nEmbd,
        fallbackText: '4 · n_embd',
      }),
      activation_function: reader.choice('activation_function', {
        values: GELU,
        fallback: 'gelu_new',
        why: 'The MLP of this family is GELU, exact or by tanh.',
      }),
      resid_pdrop: dropout('resid_pdrop'),
      embd_pdrop: dropout('embd_pdrop'),
      attn_pdrop: dropout('attn_pdrop'),
      layer_norm_epsilon: reader.number('layer_norm_epsilon', { ...LIMITS.eps, fallback: 1e-5 }),
      initializer_range: reader.number('initializer_range', { ...LIMITS.deviation, fallback: 0.02 }),
      tie_word_embeddings: reader.flag('tie_word_embeddings', true),
    };
  },
  architecture(config) {
    return {
      ...LLAMA_TRAITS,
      hidden_size: config.n_embd,
      intermediate_size: config.n_inner,
      num_hidden_layers: config.n_layer,
      num_attention_heads: config.n_head,
      num_key_value_heads: config.n_head,
      head_dim: Math.floor(config.n_embd / config.n_head),
      vocab_size: config.vocab_size,
      max_position_embeddings: config.n_positions,
      norm: 'layer',
      norm_eps: config.layer_norm_epsilon,
      positions: 'learned',
      qkv_bias: true,
      output_bias: true,
      mlp_bias: true,
      layer_windows: everyLayer({ num_hidden_layers: config.n_layer }, 0),
      mlp: config.activation_function === 'gelu' ? 'gelu' : 'gelu_tanh',
      tie_word_embeddings: config.tie_word_embeddings,
      embedding_dropout: config.embd_pdrop,
      attention_dropout: config.attn_pdrop,
      residual_dropout: config.resid_pdrop,
      initializer_range: config.initializer_range,
      residual_initializer_range: config.initializer_range / Math.sqrt(2 * config.n_layer),
    };
  },
};
