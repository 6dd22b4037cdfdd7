import { DECODER_PARAMS, decoderArchitecture, readDecoder } from './decoder.js';
import type { Family } from './family.js';
import { ggufWideHeads } from './gguf.js';
import { layerWindows, readQwenWindows } from './layer-types.js';

export const QWEN2: Family<'qwen2'> = {
  description: 'Qwen2 and Qwen2.5: queries, keys and values have biases.',
  causalLm: 'Qwen2ForCausalLM',
  params: DECODER_PARAMS,
  gguf: { name: 'qwen2', unsupported: ggufWideHeads('qwen2') },
  fieldNames: { norm_eps: 'rms_norm_eps' },
  read(reader) {
    const decoder = readDecoder(reader, {
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
      rope_theta: 10_000,
      num_key_value_heads: 32,
    });
    return { model_type: 'qwen2', ...decoder, ...readQwenWindows(reader, decoder.num_hidden_layers) };
  },
  architecture(config) {
    // Only queries, keys and values have biases.
    return { ...decoderArchitecture(config), qkv_bias: true, layer_windows: layerWindows(config) };
  },
};
