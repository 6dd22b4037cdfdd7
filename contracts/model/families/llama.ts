import type { ResolvedLlamaConfig } from '../../index.js';
import { decoderArchitecture, readDecoder } from './decoder.js';
import type { Family } from './family.js';

export const LLAMA: Family<ResolvedLlamaConfig> = {
  causalLm: 'LlamaForCausalLM',
  fieldNames: { norm_eps: 'rms_norm_eps' },
  read(reader) {
    reader.only('pretraining_tp', [1], 'matrix products are not cut into parts: set it to 1');
    return {
      model_type: 'llama',
      ...readDecoder(reader, { max_position_embeddings: 2048, rms_norm_eps: 1e-6, rope_theta: 10_000 }),
      attention_bias: reader.flag('attention_bias', false),
      mlp_bias: reader.flag('mlp_bias', false),
    };
  },
  architecture(config) {
    return {
      ...decoderArchitecture(config),
      qkv_bias: config.attention_bias,
      output_bias: config.attention_bias,
      mlp_bias: config.mlp_bias,
    };
  },
};
