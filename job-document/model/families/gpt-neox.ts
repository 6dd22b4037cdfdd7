import { readRotaryShare, readScaling, readTheta, rotatedElements } from '../rope.js';
import { decoderArchitecture } from './decoder.js';
import type { Family } from './family.js';
import { GELU, readEvenHeads } from './gelu.js';
import { ggufGelu } from './gguf.js';
import { LIMITS } from './limits.js';

const layer = (module: string) => `gpt_neox.layers.{}.${module}`;

export const GPT_NEOX: Family<'gpt_neox'> = {
  description:
    'GPT-NeoX and Pythia: attention and MLP read the same stream, rotary positions in part of a head.',
  causalLm: 'GPTNeoXForCausalLM',
  params: {
    naming: 'gpt_neox',
    in_first: false,
    modules: {
      embed: 'gpt_neox.embed_in',
      input_norm: layer('input_layernorm'),
      qkv: layer('attention.query_key_value'),
      output: layer('attention.dense'),
      post_attention_norm: layer('post_attention_layernorm'),
      up: layer('mlp.dense_h_to_4h'),
      down: layer('mlp.dense_4h_to_h'),
      norm: 'gpt_neox.final_layer_norm',
      head: 'embed_out',
    },
    tensors: { head: 'lm_head.weight' },
  },
  gguf: {
    name: 'gptneox',
    unsupported: (model) =>
      model.tie_word_embeddings
        ? 'llama.cpp has no tied embeddings for gpt_neox'
        : ggufGelu('gpt_neox')(model),
  },
  fields: {
    hidden_act: {
      description: 'The activation of the MLP. `gelu` is exact, `gelu_new` is its approximation by tanh.',
    },
    hidden_dropout: {
      description: "Dropout of the embeddings and of a block's addition to the residual stream.",
    },
    layer_norm_eps: { description: 'Epsilon of LayerNorm.' },
    rotary_emb_base: { description: 'Base of the rotary frequencies.' },
    rotary_pct: {
      description: 'Share of the elements of a head that have rotary positions, the first ones.',
    },
    use_parallel_residual: {
      description: "The MLP reads the layer's input, not the stream after attention.",
    },
  },
  fieldNames: {
    norm_eps: 'layer_norm_eps',
    rope_theta: 'rotary_emb_base',
    embedding_dropout: 'hidden_dropout',
    residual_dropout: 'hidden_dropout',
  },
  read(reader) {
    reader.ignore(['classifier_dropout']);
    const { hidden, heads } = readEvenHeads(reader, { hidden: 'hidden_size', heads: 'num_attention_heads' });
    const positions = reader.integer('max_position_embeddings', { ...LIMITS.positions, fallback: 2048 });
    const section = reader.section('rope_scaling', ['rope_parameters']);
    const { share, rotaryDim } = readRotaryShare(
      reader,
      section,
      Math.floor(hidden / heads),
      0.25,
      'rotary_pct',
    );
    const dropout = (name: string) => reader.number(name, { ...LIMITS.dropout, fallback: 0 });
    return {
      model_type: 'gpt_neox',
      hidden_size: hidden,
      intermediate_size: reader.integer('intermediate_size', LIMITS.inner),
      num_hidden_layers: reader.integer('num_hidden_layers', LIMITS.layers),
      num_attention_heads: heads,
      vocab_size: reader.integer('vocab_size', LIMITS.vocab),
      max_position_embeddings: positions,
      hidden_act: reader.choice('hidden_act', { values: GELU, fallback: 'gelu', why: 'The MLP is GELU.' }),
      use_parallel_residual: reader.flag('use_parallel_residual', true),
      attention_bias: reader.flag('attention_bias', true),
      rotary_emb_base: readTheta(reader, section, 10_000, 'rotary_emb_base'),
      rotary_pct: share,
      rope_scaling: section && readScaling(section, positions, rotaryDim),
      attention_dropout: dropout('attention_dropout'),
      hidden_dropout: dropout('hidden_dropout'),
      layer_norm_eps: reader.number('layer_norm_eps', { ...LIMITS.eps, fallback: 1e-5 }),
      initializer_range: reader.number('initializer_range', { ...LIMITS.deviation, fallback: 0.02 }),
      tie_word_embeddings: reader.flag('tie_word_embeddings', false),
    };
  },
  architecture(config) {
    const headDim = Math.floor(config.hidden_size / config.num_attention_heads);
    return {
      ...decoderArchitecture({
        ...config,
        num_key_value_heads: config.num_attention_heads,
        head_dim: headDim,
        rms_norm_eps: config.layer_norm_eps,
        rope_theta: config.rotary_emb_base,
      }),
      norm: 'layer',
      rotary_dim: rotatedElements(headDim, config.rotary_pct),
      mlp_bias: true,
      qkv_by_head: true,
      mlp: config.hidden_act === 'gelu' ? 'gelu' : 'gelu_tanh',
      parallel_residual: config.use_parallel_residual,
      embedding_dropout: config.hidden_dropout,
      residual_dropout: config.hidden_dropout,
    };
  },
};
