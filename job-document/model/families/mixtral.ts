import { DECODER_PARAMS, decoderArchitecture, everyLayer, readDecoder } from './decoder.js';
import type { Family } from './family.js';
import { LIMITS } from './limits.js';

const { gate, up, down, norm, head, ...attention } = DECODER_PARAMS.modules;
const MOE = 'model.layers.{}.block_sparse_moe';

export const MIXTRAL: Family<'mixtral'> = {
  causalLm: 'MixtralForCausalLM',
  params: {
    naming: 'mixtral',
    in_first: false,
    modules: {
      ...attention,
      router: `${MOE}.gate`,
      gate: `${MOE}.experts.{}.w1`,
      down: `${MOE}.experts.{}.w2`,
      up: `${MOE}.experts.{}.w3`,
      norm,
      head,
    },
    tensors: {
      router: 'model.layers.{}.mlp.gate.weight',
      gate: 'model.layers.{}.mlp.experts.gate_up_proj',
      up: 'model.layers.{}.mlp.experts.gate_up_proj',
      down: 'model.layers.{}.mlp.experts.down_proj',
    },
  },
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
      num_experts_per_tok: reader.integer('num_experts_per_tok', { ...LIMITS.experts, fallback: 2 }),
      output_router_logits: reader.flag('output_router_logits', false),
      router_aux_loss_coef: reader.number('router_aux_loss_coef', {
        ...LIMITS.lossCoefficient,
        fallback: 0.001,
      }),
    };
  },
  architecture(config) {
    return {
      ...decoderArchitecture(config),
      layer_windows: everyLayer(config, config.sliding_window ?? 0),
      num_experts: config.num_local_experts,
      experts_per_token: config.num_experts_per_tok,
      // As in transformers, the loss includes the auxiliary loss only if the router's logits are requested.
      router_aux_loss_coef: config.output_router_logits ? config.router_aux_loss_coef : 0,
    };
  },
};
