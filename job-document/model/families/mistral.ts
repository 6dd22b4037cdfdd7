import { DECODER_PARAMS, decoderArchitecture, everyLayer, readDecoder } from './decoder.js';
import type { Family } from './family.js';
import { LIMITS } from './limits.js';

export const MISTRAL: Family<'mistral'> = {
  description: 'Mistral.',
  causalLm: 'MistralForCausalLM',
  params: DECODER_PARAMS,
  gguf: { name: 'llama', pairs: true, scalings: ['llama3'] },
  fieldNames: { norm_eps: 'rms_norm_eps' },
  read(reader) {
    reader.only('layer_types', [], 'all layers of this family have the same sliding_window: remove it');
    return {
      model_type: 'mistral',
      ...readDecoder(reader, {
        max_position_embeddings: 131_072,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000,
        num_key_value_heads: 8,
      }),
      sliding_window: reader.integerOrNull('sliding_window', { ...LIMITS.window, fallback: 4096 }),
    };
  },
  architecture(config) {
    return { ...decoderArchitecture(config), layer_windows: everyLayer(config, config.sliding_window ?? 0) };
  },
};
