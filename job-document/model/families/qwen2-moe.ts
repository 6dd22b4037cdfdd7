import { decoderArchitecture, readDecoder } from './decoder.js';
import {
  EXPERT_TENSORS,
  expertModules,
  readExperts,
  readRouter,
  refuseDenseLayers,
  routerTraits,
} from './experts.js';
import type { Family } from './family.js';
import { ggufWideHeads } from './gguf.js';
import { layerWindows, readQwenWindows } from './layer-types.js';
import { LIMITS } from './limits.js';

const MLP = 'model.layers.{}.mlp';

export const QWEN2_MOE: Family<'qwen2_moe'> = {
  description:
    'Qwen1.5-MoE and Qwen2-MoE: a mixture of experts in every layer, and an expert for all tokens besides. `intermediate_size` has no meaning.',
  causalLm: 'Qwen2MoeForCausalLM',
  params: {
    naming: 'qwen2_moe',
    in_first: false,
    modules: expertModules(
      MLP,
      { gate: 'gate_proj', up: 'up_proj', down: 'down_proj' },
      {
        shared_gate: `${MLP}.shared_expert.gate_proj`,
        shared_up: `${MLP}.shared_expert.up_proj`,
        shared_down: `${MLP}.shared_expert.down_proj`,
        shared_router: `${MLP}.shared_expert_gate`,
      },
    ),
    tensors: EXPERT_TENSORS,
  },
  gguf: {
    name: 'qwen2moe',
    unsupported(model) {
      if (model.tie_word_embeddings) return 'llama.cpp has no tied embeddings for qwen2_moe';
      if (model.norm_topk_prob)
        return "llama.cpp does not divide the probabilities of qwen2_moe's experts by their sum (norm_topk_prob)";
      return ggufWideHeads('qwen2_moe')(model);
    },
  },
  fields: {
    shared_expert_intermediate_size: { description: 'Width inside the expert of all tokens; even.' },
    qkv_bias: { description: 'The projections of queries, keys and values have biases.' },
  },
  fieldNames: {
    norm_eps: 'rms_norm_eps',
    intermediate_size: 'moe_intermediate_size',
    shared_expert_size: 'shared_expert_intermediate_size',
    experts_per_token: 'num_experts_per_tok',
  },
  read(reader) {
    refuseDenseLayers(reader);
    const decoder = readDecoder(reader, {
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
      rope_theta: 10_000,
      num_key_value_heads: 16,
    });
    return {
      model_type: 'qwen2_moe',
      ...decoder,
      qkv_bias: reader.flag('qkv_bias', true),
      ...readQwenWindows(
        reader,
        decoder.num_hidden_layers,
        (layer, maxWindowLayers) => layer % 2 === 0 && layer < maxWindowLayers,
      ),
      ...readExperts(reader, { moe_intermediate_size: 1408, num_experts: 60 }),
      shared_expert_intermediate_size: reader.integer('shared_expert_intermediate_size', {
        ...LIMITS.inner,
        fallback: 5632,
      }),
      ...readRouter(reader, 4),
    };
  },
  architecture(config) {
    return {
      ...decoderArchitecture(config),
      intermediate_size: config.moe_intermediate_size,
      shared_expert_size: config.shared_expert_intermediate_size,
      qkv_bias: config.qkv_bias,
      layer_windows: layerWindows(config),
      num_experts: config.num_experts,
      norm_topk_prob: config.norm_topk_prob,
      ...routerTraits(config),
    };
  },
};
