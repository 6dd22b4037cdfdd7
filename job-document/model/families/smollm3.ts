import type { ConfigReader } from '../reader.js';
import { DECODER_PARAMS, decoderArchitecture, readBiases, readDecoder } from './decoder.js';
import type { Family } from './family.js';
import { layerWindows, readLayerTypes, readSwitchedWindow } from './layer-types.js';

/** Returns for each layer whether it rotates queries and keys. */
function readRopeLayers(reader: ConfigReader, layers: number, interval: number): (0 | 1)[] {
  const given = reader.list('no_rope_layers', [0, 1] as const, '1 is a layer with rotary positions.');
  if (given !== undefined && given.length !== layers)
    reader.fail(
      'no_rope_layers',
      'wrong_length',
      `has ${given.length} entries; num_hidden_layers is ${layers}`,
    );
  return given ?? Array.from({ length: layers }, (_, layer) => ((layer + 1) % interval === 0 ? 0 : 1));
}

export const SMOLLM3: Family<'smollm3'> = {
  description: 'SmolLM3: some layers have no positions.',
  causalLm: 'SmolLM3ForCausalLM',
  params: DECODER_PARAMS,
  gguf: {
    name: 'smollm3',
    pairs: true,
    unsupported({ qkv_bias, mlp_bias, layer_rope }) {
      if (qkv_bias || mlp_bias) return 'llama.cpp has no biases for smollm3 (attention_bias, mlp_bias)';
      return layer_rope.some((rope, layer) => rope !== ((layer + 1) % 4 === 0 ? 0 : 1))
        ? "llama.cpp's smollm3 has no positions in every fourth layer, and no_rope_layers differs"
        : null;
    },
  },
  fields: {
    no_rope_layer_interval: { description: 'Without `no_rope_layers`: every such layer has no positions.' },
    no_rope_layers: { description: 'For each layer 1 if it has rotary positions, 0 if it has none.' },
  },
  fieldNames: { norm_eps: 'rms_norm_eps', layer_rope: 'no_rope_layers' },
  read(reader) {
    // Only the defaults of Qwen's layer_types read it.
    reader.ignore(['max_window_layers']);
    const decoder = readDecoder(reader, {
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
      rope_theta: 2_000_000,
      num_key_value_heads: 4,
      tie_word_embeddings: true,
    });
    const interval = reader.integer('no_rope_layer_interval', { min: 1, max: 1024, fallback: 4 });
    const ropeLayers = readRopeLayers(reader, decoder.num_hidden_layers, interval);
    const window = readSwitchedWindow(reader, null);
    return {
      model_type: 'smollm3',
      ...decoder,
      ...readBiases(reader),
      no_rope_layer_interval: interval,
      no_rope_layers: ropeLayers,
      ...window,
      layer_types: readLayerTypes(
        reader,
        decoder.num_hidden_layers,
        window.sliding_window,
        (layer) => ropeLayers[layer] === 0,
      ),
    };
  },
  architecture(config) {
    return {
      ...decoderArchitecture(config),
      layer_rope: config.no_rope_layers,
      layer_windows: layerWindows(config),
    };
  },
};
