import type { ResolvedJobSpec } from '../../contracts/index.js';
import type { Sharding } from '../../contracts/rank-protocol.js';
import { expertSet } from '../../contracts/shard-layout.js';
import { architectureOf, groupOf, modelParams, trainedArchitecture } from '../../job-document/index.js';
import type { NativeCore, TrainerConfig } from '../shared/native/adapter.js';
import type { TrainedState } from './load/fit.js';

/** Returns the trained state of a job: the model's parameters in canonical order and their optimizer states. */
export function trainedState(
  core: NativeCore,
  config: TrainerConfig,
  spec: ResolvedJobSpec,
): TrainedState & { sharding: Sharding } {
  const { type, param_groups } = spec.train.optimizer;
  const sharding = core.sharding(spec.zero);
  const architecture = trainedArchitecture(spec);
  const experts = new Map(modelParams(architecture).map(({ name, expert }) => [name, expert]));
  const setOf = (name: string) =>
    expertSet(experts.get(name) ?? null, architecture.num_experts, sharding.expert_sets);
  const params = core.paramTable(config.model).map(({ name, shape, numel, group, base }) => {
    const frozen = base || (groupOf(param_groups, name)?.frozen ?? false);
    return { name, shape, numel, group, frozen, base, expert_set: setOf(name) };
  });
  const numBase = modelParams(architectureOf(spec.model.config)).length;
  return { params, optimizer: type, states: core.stateNames(config), num_base: numBase, sharding };
}
