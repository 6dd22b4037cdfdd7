import { DECODER_PARAMS, decoderArchitecture, readDecoder } from './decoder.js';
import type { Family } from './family.js';
import { ggufBiases } from './gguf.js';
import { layerWindows, readQwenWindows } from './layer-types.js';

export const QWEN3: Family<'qwen3'> = {
  description: 'Qwen3: query and key heads are normalized.',
  causalLm: 'Qwen3ForCausalLM',
  params: DECODER_PARAMS,
  gguf: { name: 'qwen3', unsupported: ggufBiases('qwen3') },
  fieldNames: { norm_eps: 'rms_norm_eps' },
  read(reader) {
    const decoder = readDecoder(reader, {
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
      rope_theta: 10_000,
      num_key_value_heads: 32,
      head_dim: 128,
    });
    return {
      model_type: 'qwen3',
      ...decoder,
      attention_bias: reader.flag('attention_bias', false),
      ...readQwenWindows(reader, decoder.num_hidden_layers),
    };
  },
  architecture(config) {
    return {
      ...decoderArchitecture(config),
      qk_norm: true,
      layer_windows: layerWindows(config),
    };
  },
};
