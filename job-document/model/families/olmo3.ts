import type { ConfigReader } from '../reader.js';
import { type RopeConfig, readRope, readScaling, ropesOfTypes } from '../rope.js';
import { decoderArchitecture, readDecoderWith } from './decoder.js';
import type { Family } from './family.js';
import { layerWindows, readLayerTypes } from './layer-types.js';
import { LIMITS } from './limits.js';
import { OLMO_PARAMS } from './olmo2.js';

/** Base of the rotary frequencies of all layers. */
const THETA = 500_000;
const WHY_THETA = `the base is ${THETA}: with another one, transformers 4 and 5 compute sliding layers differently`;

/** Reads `rope_scaling`, which scales layers without a window, or `rope_parameters` for each type of layer. */
function readRopes(reader: ConfigReader, maxPositions: number, headDim: number): RopeConfig {
  reader.only('rope_theta', [THETA], WHY_THETA);
  const types = ropesOfTypes(reader);
  if (types === null) return readRope(reader, THETA, maxPositions, headDim);
  const { full, sliding } = types;
  sliding?.only('rope_theta', [THETA], WHY_THETA);
  sliding?.finish();
  full?.only('rope_theta', [THETA], WHY_THETA);
  return { rope_theta: THETA, rope_scaling: full && readScaling(full, maxPositions, headDim) };
}

export const OLMO3: Family<'olmo3'> = {
  description:
    'OLMo 3: OLMo 2 with a sliding window in some layers. `rope_scaling` applies to the other layers.',
  causalLm: 'Olmo3ForCausalLM',
  params: OLMO_PARAMS,
  gguf: {
    name: 'olmo2',
    unsupported: () => 'windows and rotary positions that differ by layer are not exported to GGUF',
  },
  fields: { sliding_window: { description: 'Number of tokens that a query attends to, including itself.' } },
  fieldNames: { norm_eps: 'rms_norm_eps' },
  read(reader) {
    const decoder = readDecoderWith(
      reader,
      { max_position_embeddings: 2048, rms_norm_eps: 1e-5, rope_theta: THETA },
      (maxPositions, headDim) => readRopes(reader, maxPositions, headDim),
    );
    const window = reader.integer('sliding_window', { ...LIMITS.window, fallback: 4096 });
    return {
      model_type: 'olmo3',
      ...decoder,
      attention_bias: reader.flag('attention_bias', false),
      sliding_window: window,
      layer_types: readLayerTypes(
        reader,
        decoder.num_hidden_layers,
        window,
        (layer) => (layer + 1) % 4 !== 0,
      ),
    };
  },
  architecture(config) {
    const layerRope = config.layer_types.map((type) => (type === 'sliding_attention' ? 2 : 1));
    return {
      ...decoderArchitecture(config),
      qk_norm: true,
      qk_norm_scope: 'all',
      layer_windows: layerWindows(config),
      layer_rope: config.rope_scaling === null ? [] : layerRope,
      local_rope_theta: config.rope_theta,
    };
  },
};
