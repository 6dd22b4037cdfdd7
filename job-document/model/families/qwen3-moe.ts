import type { ConfigReader } from '../reader.js';
import { decoderArchitecture, everyLayer, readDecoder } from './decoder.js';
import { EXPERT_TENSORS, expertModules, readRouter, routerTraits } from './experts.js';
import type { Family } from './family.js';
import { ggufBiases } from './gguf.js';
import { readSwitchedWindow } from './layer-types.js';
import { LIMITS } from './limits.js';

function refuseOtherRouters(reader: ConfigReader): void {
  const why = 'every layer has experts';
  reader.only('decoder_sparse_step', [1], why);
  reader.only('mlp_only_layers', [[]], why);
  if (!reader.flag('norm_topk_prob', false))
    reader.fail(
      'norm_topk_prob',
      'model_field_unsupported',
      'norm_topk_prob, which is false by default: the probabilities of the chosen experts are divided by their sum',
      'true',
    );
}

export const QWEN3_MOE: Family<'qwen3_moe'> = {
  description:
    'Qwen3-MoE: a Qwen3 with a mixture of experts in every layer. `intermediate_size` has no meaning.',
  causalLm: 'Qwen3MoeForCausalLM',
  params: {
    naming: 'qwen3_moe',
    in_first: false,
    modules: expertModules('model.layers.{}.mlp', { gate: 'gate_proj', up: 'up_proj', down: 'down_proj' }),
    tensors: EXPERT_TENSORS,
  },
  gguf: { name: 'qwen3moe', unsupported: ggufBiases('qwen3_moe') },
  fields: {
    moe_intermediate_size: { description: 'Width inside an expert; even.' },
    norm_topk_prob: {
      enum: [true],
      description: 'The probabilities of the chosen experts are divided by their sum; must be true.',
    },
  },
  fieldNames: {
    norm_eps: 'rms_norm_eps',
    intermediate_size: 'moe_intermediate_size',
    experts_per_token: 'num_experts_per_tok',
  },
  read(reader) {
    refuseOtherRouters(reader);
    reader.ignore(['max_window_layers']);
    return {
      model_type: 'qwen3_moe',
      ...readDecoder(reader, {
        max_position_embeddings: 32_768,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000,
        num_key_value_heads: 4,
      }),
      attention_bias: reader.flag('attention_bias', false),
      ...readSwitchedWindow(reader, 4096),
      moe_intermediate_size: reader.integer('moe_intermediate_size', { ...LIMITS.inner, fallback: 768 }),
      num_experts: reader.integer('num_experts', {
        ...LIMITS.experts,
        aliases: ['num_local_experts'],
        fallback: 128,
      }),
      ...readRouter(reader, 8),
      norm_topk_prob: true,
    };
  },
  architecture(config) {
    return {
      ...decoderArchitecture(config),
      intermediate_size: config.moe_intermediate_size,
      qk_norm: true,
      layer_windows: everyLayer(config, config.sliding_window ?? 0),
      num_experts: config.num_experts,
      ...routerTraits(config),
    };
  },
};
