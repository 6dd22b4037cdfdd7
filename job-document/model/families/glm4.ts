import { DECODER_PARAMS } from './decoder.js';
import type { Family } from './family.js';
import { GLM_MODULES, glmArchitecture, readGlm } from './glm.js';

const { post_attention_norm, gate_up, down, norm, head, ...attention } = GLM_MODULES;

/** GLM-4-0414: a GLM with norms before and behind attention and MLP. */
export const GLM4: Family<'glm4'> = {
  description:
    'GLM-4-0414, dense: norms before and behind attention and MLP, rotary positions in part of a head.',
  causalLm: 'Glm4ForCausalLM',
  params: {
    ...DECODER_PARAMS,
    naming: 'glm4',
    modules: {
      ...attention,
      attention_output_norm: 'model.layers.{}.post_self_attn_layernorm',
      post_attention_norm,
      gate_up,
      down,
      mlp_output_norm: 'model.layers.{}.post_mlp_layernorm',
      norm,
      head,
    },
  },
  gguf: { name: 'glm4' },
  fieldNames: { norm_eps: 'rms_norm_eps' },
  read: (reader) => ({ model_type: 'glm4', ...readGlm(reader) }),
  architecture: glmArchitecture,
};
