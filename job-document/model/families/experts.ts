/** Families with a mixture of experts in every layer. */
import type { Part } from '../parts.js';
import type { ConfigReader } from '../reader.js';
import { DECODER_PARAMS } from './decoder.js';
import type { ConfigOf } from './family.js';
import { LIMITS } from './limits.js';

type RouterConfig = Pick<
  ConfigOf<'mixtral'>,
  'num_experts_per_tok' | 'output_router_logits' | 'router_aux_loss_coef'
>;

/**
 * Returns the names of Llama's parameters with experts in place of the MLP.
 * @param names of an expert's projections, in canonical order
 * @param shared modules of an expert for all tokens
 */
export function expertModules(
  mlp: string,
  names: Readonly<Record<'gate' | 'up' | 'down', string>>,
  shared: Readonly<Partial<Record<Part, string>>> = {},
) {
  const { gate, up, down, norm, head, ...attention } = DECODER_PARAMS.modules;
  return {
    ...attention,
    ...shared,
    router: `${mlp}.gate`,
    ...Object.fromEntries(Object.entries(names).map(([part, name]) => [part, `${mlp}.experts.{}.${name}`])),
    norm,
    head,
  };
}

/** Names of tensors with the matrices of all experts of a layer. */
export const EXPERT_TENSORS = {
  gate: 'model.layers.{}.mlp.experts.gate_up_proj',
  up: 'model.layers.{}.mlp.experts.gate_up_proj',
  down: 'model.layers.{}.mlp.experts.down_proj',
};

export function refuseDenseLayers(reader: ConfigReader): void {
  const why = 'every layer has experts';
  reader.only('decoder_sparse_step', [1], why);
  reader.only('mlp_only_layers', [[]], why);
}

type ExpertsConfig = Pick<ConfigOf<'qwen3_moe'>, 'moe_intermediate_size' | 'num_experts' | 'norm_topk_prob'>;

/** Reads the experts of a Qwen. */
export function readExperts(
  reader: ConfigReader,
  defaults: Pick<ExpertsConfig, 'moe_intermediate_size' | 'num_experts'>,
): ExpertsConfig {
  return {
    moe_intermediate_size: reader.integer('moe_intermediate_size', {
      ...LIMITS.inner,
      fallback: defaults.moe_intermediate_size,
    }),
    num_experts: reader.integer('num_experts', {
      ...LIMITS.experts,
      aliases: ['num_local_experts'],
      fallback: defaults.num_experts,
    }),
    norm_topk_prob: reader.flag('norm_topk_prob', false),
  };
}

/** @param chosen experts of a token by default */
export function readRouter(reader: ConfigReader, chosen: number): RouterConfig {
  return {
    num_experts_per_tok: reader.integer('num_experts_per_tok', { ...LIMITS.experts, fallback: chosen }),
    output_router_logits: reader.flag('output_router_logits', false),
    router_aux_loss_coef: reader.number('router_aux_loss_coef', {
      ...LIMITS.lossCoefficient,
      fallback: 0.001,
    }),
  };
}

/** As in transformers, the loss includes the auxiliary loss only if the router's logits are requested. */
export function routerTraits(config: RouterConfig) {
  return {
    experts_per_token: config.num_experts_per_tok,
    router_aux_loss_coef: config.output_router_logits ? config.router_aux_loss_coef : 0,
  };
}
