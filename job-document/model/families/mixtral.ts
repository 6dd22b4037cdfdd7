import { decoderArchitecture, everyLayer, readDecoder } from './decoder.js';
import { EXPERT_TENSORS, expertModules, readRouter, routerTraits } from './experts.js';
import type { Family } from './family.js';
import { LIMITS } from './limits.js';

export const MIXTRAL: Family<'mixtral'> = {
  description: 'Mixtral: a mixture of experts.',
  causalLm: 'MixtralForCausalLM',
  params: {
    naming: 'mixtral',
    in_first: false,
    modules: expertModules('model.layers.{}.block_sparse_moe', { gate: 'w1', down: 'w2', up: 'w3' }),
    tensors: { router: 'model.layers.{}.mlp.gate.weight', ...EXPERT_TENSORS },
  },
  gguf: { name: 'llama', pairs: true, scalings: ['llama3'] },
  fieldNames: {
    norm_eps: 'rms_norm_eps',
    num_experts: 'num_local_experts',
    experts_per_token: 'num_experts_per_tok',
  },
  read(reader) {
    reader.only('router_jitter_noise', [0], 'router input noise is not supported: set it to 0');
    reader.only('moe_frequency', [1], 'every layer has experts: set it to 1');
    return {
      model_type: 'mixtral',
      ...readDecoder(reader, {
        max_position_embeddings: 131_072,
        rms_norm_eps: 1e-5,
        rope_theta: 1_000_000,
        num_key_value_heads: 8,
      }),
      sliding_window: reader.integerOrNull('sliding_window', { ...LIMITS.window, fallback: null }),
      num_local_experts: reader.integer('num_local_experts', {
        ...LIMITS.experts,
        aliases: ['num_experts'],
        fallback: 8,
      }),
      ...readRouter(reader, 2),
    };
  },
  architecture(config) {
    return {
      ...decoderArchitecture(config),
      layer_windows: everyLayer(config, config.sliding_window ?? 0),
      num_experts: config.num_local_experts,
      ...routerTraits(config),
    };
  },
};
