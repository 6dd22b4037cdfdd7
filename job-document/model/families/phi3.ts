import { LLAMA_TRAITS, type RopeScalingParams } from '../../../contracts/architecture.js';
import type { ConfigReader } from '../reader.js';
import { longropeFactor, readLongrope, readRotaryShare, readTheta, rotatedElements } from '../rope.js';
import { DECODER_PARAMS, decoderArchitecture, everyLayer, readDecoderWith } from './decoder.js';
import type { ConfigOf, Family } from './family.js';
import { LONGROPE_SCALING } from './fields.js';
import { ggufWideHeads } from './gguf.js';
import { LIMITS } from './limits.js';

const { embed, input_norm, output, post_attention_norm, down, norm, head } = DECODER_PARAMS.modules;

type RopeFields = Pick<
  ConfigOf<'phi3'>,
  'rope_theta' | 'rope_scaling' | 'partial_rotary_factor' | 'original_max_position_embeddings'
>;

/** Names of longrope: that of transformers, and that of Phi-3's first files. */
const TYPES = { default: null, longrope: 'longrope', su: 'longrope' } as const;
const WHY_BIAS = 'projections of this family have no biases';

function readRopes(reader: ConfigReader, headDim: number): RopeFields {
  const section = reader.section('rope_scaling', ['rope_parameters']);
  const { share, rotaryDim } = readRotaryShare(reader, section, headDim, 1);
  const original = reader.integer('original_max_position_embeddings', {
    min: 2,
    max: LIMITS.positions.max,
    fallback: 4096,
  });
  section?.only(
    'original_max_position_embeddings',
    [original],
    `at the top level the field is ${original}, which transformers uses: both must be equal`,
  );
  return {
    rope_theta: readTheta(reader, section, 10_000),
    rope_scaling: section && readScaling(section, rotaryDim),
    partial_rotary_factor: share,
    original_max_position_embeddings: original,
  };
}

function readScaling(section: ConfigReader, rotaryDim: number): RopeFields['rope_scaling'] {
  const type = section.choice('rope_type', {
    aliases: ['type'],
    values: TYPES,
    fallback: 'default',
    why: 'transformers has no other scaling for this family.',
  });
  // The type determines the allowed fields.
  if (!section.isSound('rope_type')) return null;
  const scaling = type && { type, ...readLongrope(section, rotaryDim) };
  section.finish();
  return scaling;
}

function scalingParams(config: ConfigOf<'phi3'>): RopeScalingParams {
  const original = config.original_max_position_embeddings;
  if (config.rope_scaling === null) return LLAMA_TRAITS.rope_scaling;
  return {
    ...LLAMA_TRAITS.rope_scaling,
    factor: longropeFactor(config.max_position_embeddings, original),
    original_max_position_embeddings: original,
    ...config.rope_scaling,
  };
}

/** Phi-3, Phi-3.5, Phi-4 and Phi-4-mini. */
export const PHI3: Family<'phi3'> = {
  description: 'Phi-3, Phi-3.5, Phi-4 and Phi-4-mini: fused projections, rotary positions in part of a head.',
  causalLm: 'Phi3ForCausalLM',
  ownCode: 'modeling_phi3.Phi3ForCausalLM',
  params: {
    ...DECODER_PARAMS,
    naming: 'phi3',
    modules: {
      embed,
      input_norm,
      qkv: 'model.layers.{}.self_attn.qkv_proj',
      output,
      post_attention_norm,
      gate_up: 'model.layers.{}.mlp.gate_up_proj',
      down,
      norm,
      head,
    },
  },
  gguf: { name: 'phi3', scalings: ['longrope'], unsupported: ggufWideHeads('phi3') },
  fields: {
    rope_scaling: LONGROPE_SCALING,
    original_max_position_embeddings: {
      description: 'The longest sequence of the original training, for `rope_scaling`.',
    },
  },
  fieldNames: { norm_eps: 'rms_norm_eps', residual_dropout: 'resid_pdrop' },
  read(reader) {
    for (const name of ['attention_bias', 'mlp_bias', 'lm_head_bias']) reader.only(name, [false], WHY_BIAS);
    for (const name of ['full_attn_mod', 'interpolate_factor'])
      reader.only(name, [1], 'transformers does not read it, and has all layers alike: set it to 1');
    reader.ignoreWithWarning(['embd_pdrop'], 'transformers drops no embeddings in this family', [0]);
    return {
      model_type: 'phi3',
      ...readDecoderWith(
        reader,
        { max_position_embeddings: 4096, rms_norm_eps: 1e-5, rope_theta: 10_000 },
        (_, headDim) => readRopes(reader, headDim),
      ),
      resid_pdrop: reader.number('resid_pdrop', { ...LIMITS.dropout, fallback: 0 }),
      sliding_window: reader.integerOrNull('sliding_window', { ...LIMITS.window, fallback: null }),
    };
  },
  architecture(config) {
    return {
      ...decoderArchitecture({ ...config, rope_scaling: null }),
      rope_scaling: scalingParams(config),
      rotary_dim: rotatedElements(config.head_dim, config.partial_rotary_factor),
      layer_windows: everyLayer(config, config.sliding_window ?? 0),
      residual_dropout: config.resid_pdrop,
    };
  },
};
