import { DECODER_PARAMS, decoderArchitecture, readDecoder } from './decoder.js';
import type { Family } from './family.js';
import { ggufBiases } from './gguf.js';

const { input_norm, post_attention_norm, gate, up, down, norm, head, ...attention } = DECODER_PARAMS.modules;

/** Names of OLMo 2 and 3: norms stand behind attention and MLP, not before them. */
export const OLMO_PARAMS = {
  ...DECODER_PARAMS,
  naming: 'olmo2',
  modules: {
    ...attention,
    attention_output_norm: post_attention_norm,
    gate,
    up,
    down,
    mlp_output_norm: 'model.layers.{}.post_feedforward_layernorm',
    norm,
    head,
  },
};

export const OLMO2: Family<'olmo2'> = {
  description: 'OLMo 2: outputs of attention and MLP are normalized, and queries and keys over all heads.',
  causalLm: 'Olmo2ForCausalLM',
  params: OLMO_PARAMS,
  gguf: { name: 'olmo2', unsupported: ggufBiases('olmo2') },
  fieldNames: { norm_eps: 'rms_norm_eps' },
  read(reader) {
    return {
      model_type: 'olmo2',
      ...readDecoder(reader, { max_position_embeddings: 2048, rms_norm_eps: 1e-5, rope_theta: 10_000 }),
      attention_bias: reader.flag('attention_bias', false),
    };
  },
  architecture(config) {
    return {
      ...decoderArchitecture(config),
      qk_norm: true,
      qk_norm_scope: 'all',
    };
  },
};
