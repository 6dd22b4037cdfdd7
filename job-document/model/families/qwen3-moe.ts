import { decoderArchitecture, everyLayer, readDecoder } from './decoder.js';
import {
  EXPERT_TENSORS,
  expertModules,
  readExperts,
  readRouter,
  refuseDenseLayers,
  routerTraits,
} from './experts.js';
import type { Family } from './family.js';
import { ggufBiases } from './gguf.js';
import { readSwitchedWindow } from './layer-types.js';

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
  gguf: {
    name: 'qwen3moe',
    unsupported: (model) =>
      model.norm_topk_prob
        ? ggufBiases('qwen3_moe')(model)
        : "llama.cpp divides the probabilities of qwen3_moe's experts by their sum (norm_topk_prob)",
  },
  fieldNames: {
    norm_eps: 'rms_norm_eps',
    intermediate_size: 'moe_intermediate_size',
    experts_per_token: 'num_experts_per_tok',
  },
  read(reader) {
    refuseDenseLayers(reader);
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
      ...readExperts(reader, { moe_intermediate_size: 768, num_experts: 128 }),
      ...readRouter(reader, 8),
    };
  },
  architecture(config) {
    return {
      ...decoderArchitecture(config),
      intermediate_size: config.moe_intermediate_size,
      qk_norm: true,
      layer_windows: everyLayer(config, config.sliding_window ?? 0),
      num_experts: config.num_experts,
      norm_topk_prob: config.norm_topk_prob,
      ...routerTraits(config),
    };
  },
};
