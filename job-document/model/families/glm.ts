import type { ConfigReader } from '../reader.js';
import { readPartialRope, rotatedElements } from '../rope.js';
import { DECODER_PARAMS, decoderArchitecture, readDecoderWith } from './decoder.js';
import type { ConfigOf, Family } from './family.js';
import { ggufWideHeads } from './gguf.js';

const { gate, up, down, norm, head, query_norm, key_norm, ...attention } = DECODER_PARAMS.modules;

/** Modules of a layer, with gate and up in one matrix. */
export const GLM_MODULES = {
  ...attention,
  gate_up: 'model.layers.{}.mlp.gate_up_proj',
  down,
  norm,
  head,
};

const DEFAULTS = {
  max_position_embeddings: 131_072,
  rms_norm_eps: 1.5625e-7,
  rope_theta: 10_000,
  num_key_value_heads: 2,
  head_dim: 128,
};

type GlmConfig = Omit<ConfigOf<'glm'>, 'model_type'>;

/** Reads the fields of both generations. */
export function readGlm(reader: ConfigReader): GlmConfig {
  return {
    ...readDecoderWith(reader, DEFAULTS, (maxPositions, headDim) =>
      readPartialRope(reader, { rope_theta: DEFAULTS.rope_theta, share: 0.5 }, maxPositions, headDim),
    ),
    attention_bias: reader.flag('attention_bias', true),
  };
}

/** Neighbouring elements are rotated together. */
export function glmArchitecture(config: GlmConfig) {
  return {
    ...decoderArchitecture(config),
    // The output projection of attention has none.
    output_bias: false,
    rotary_dim: rotatedElements(config.head_dim, config.partial_rotary_factor),
    rope_interleaved: true,
  };
}

/** GLM-4 as of 2024. */
export const GLM: Family<'glm'> = {
  description: 'GLM-4 of 2024, dense: a fused gate, rotary positions in part of a head.',
  causalLm: 'GlmForCausalLM',
  params: { ...DECODER_PARAMS, naming: 'glm', modules: GLM_MODULES },
  gguf: { name: 'chatglm', unsupported: ggufWideHeads('glm') },
  fieldNames: { norm_eps: 'rms_norm_eps' },
  read: (reader) => ({ model_type: 'glm', ...readGlm(reader) }),
  architecture: glmArchitecture,
};
