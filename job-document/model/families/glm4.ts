import { readPartialRope, rotatedElements } from '../rope.js';
import { DECODER_PARAMS, decoderArchitecture, readDecoderWith } from './decoder.js';
import type { Family } from './family.js';

const { gate, up, down, norm, head, query_norm, key_norm, output, post_attention_norm, ...attention } =
  DECODER_PARAMS.modules;

const DEFAULTS = {
  max_position_embeddings: 131_072,
  rms_norm_eps: 1.5625e-7,
  rope_theta: 10_000,
  num_key_value_heads: 2,
  head_dim: 128,
};

/** GLM-4-0414: norms before and behind attention and MLP, and a rotation of neighbouring elements. */
export const GLM4: Family<'glm4'> = {
  description:
    'GLM-4-0414, dense: norms before and behind attention and MLP, rotary positions in part of a head.',
  causalLm: 'Glm4ForCausalLM',
  params: {
    ...DECODER_PARAMS,
    naming: 'glm4',
    modules: {
      ...attention,
      output,
      attention_output_norm: 'model.layers.{}.post_self_attn_layernorm',
      post_attention_norm,
      gate_up: 'model.layers.{}.mlp.gate_up_proj',
      down,
      mlp_output_norm: 'model.layers.{}.post_mlp_layernorm',
      norm,
      head,
    },
  },
  gguf: { name: 'glm4' },
  fieldNames: { norm_eps: 'rms_norm_eps' },
  read(reader) {
    return {
      model_type: 'glm4',
      ...readDecoderWith(reader, DEFAULTS, (maxPositions, headDim) =>
        readPartialRope(reader, { rope_theta: DEFAULTS.rope_theta, share: 0.5 }, maxPositions, headDim),
      ),
      attention_bias: reader.flag('attention_bias', true),
    };
  },
  architecture(config) {
    return {
      ...decoderArchitecture(config),
      // The output projection of attention has none.
      output_bias: false,
      rotary_dim: rotatedElements(config.head_dim, config.partial_rotary_factor),
      rope_interleaved: true,
    };
  },
};
