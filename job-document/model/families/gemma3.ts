import type { ConfigReader } from '../reader.js';
import { type RopeConfig, readRope, readScaling, readTheta, ropesOfTypes } from '../rope.js';
import type { Family } from './family.js';
import { GEMMA_FIELDS, GEMMA_PARAMS, gemmaArchitecture, readGemma, unsupportedGemma } from './gemma.js';

const GLOBAL_THETA = 1_000_000;
const LOCAL_THETA = 10_000;

type GemmaRopes = RopeConfig & { rope_local_base_freq: number };

/** Reads positions of layers without a window, and the base of the others. */
function readRopes(reader: ConfigReader, maxPositions: number, headDim: number): GemmaRopes {
  const types = ropesOfTypes(reader);
  if (types === null) {
    // transformers reads neither a base nor a factor from one object for both types of layers.
    reader.only('rope_parameters', [], 'it needs an object for full_attention and one for sliding_attention');
    return {
      ...readRope(reader, GLOBAL_THETA, maxPositions, headDim),
      rope_local_base_freq: readTheta(reader, null, LOCAL_THETA, 'rope_local_base_freq'),
    };
  }
  const { full, sliding } = types;
  const local = readTheta(reader, sliding, LOCAL_THETA, 'rope_local_base_freq');
  sliding?.finish();
  return {
    rope_theta: readTheta(reader, full, GLOBAL_THETA),
    rope_scaling: full && readScaling(full, maxPositions, headDim),
    rope_local_base_freq: local,
  };
}

function refuseSoftCaps(reader: ConfigReader): void {
  for (const name of ['attn_logit_softcapping', 'final_logit_softcapping'])
    reader.only(name, [], 'scores and logits of Gemma 3 have no soft caps');
}

export const GEMMA3: Family<'gemma3_text'> = {
  description: 'Gemma 3, text. `rope_theta` and `rope_scaling` are of the layers without a window.',
  causalLm: 'Gemma3ForCausalLM',
  params: GEMMA_PARAMS,
  gguf: { name: 'gemma3', unsupported: (model) => unsupportedGemma(model, { period: 6, largest: 62 }) },
  fields: {
    ...GEMMA_FIELDS,
    sliding_window_pattern: {
      description: 'Without `layer_types`: the layers whose number is a multiple of it have no window.',
    },
    rope_local_base_freq: { description: 'Base of the rotary frequencies of layers with the window.' },
  },
  fieldNames: { norm_eps: 'rms_norm_eps', local_rope_theta: 'rope_local_base_freq' },
  read(reader) {
    refuseSoftCaps(reader);
    const pattern = reader.integer('sliding_window_pattern', { min: 1, max: 1024, fallback: 6 });
    return {
      model_type: 'gemma3_text',
      ...readGemma(
        reader,
        { max_position_embeddings: 131_072, rope_theta: GLOBAL_THETA },
        (maxPositions, headDim) => readRopes(reader, maxPositions, headDim),
        (layer) => (layer + 1) % pattern !== 0,
      ),
    };
  },
  architecture(config) {
    return {
      ...gemmaArchitecture(config),
      qk_norm: true,
      layer_rope: config.layer_types.map((type) => (type === 'sliding_attention' ? 2 : 1)),
      local_rope_theta: config.rope_local_base_freq,
    };
  },
};
