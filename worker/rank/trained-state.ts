import type { ResolvedJobSpec } from '../../contracts/index.js';
import { groupOf } from '../../contracts/resolve-spec/param-groups.js';
import type { TrainedState } from '../checkpoint/fit.js';
import type { NativeCore, TrainerConfig } from '../native/adapter.js';

/** What a job trains: the model's parameters in canonical order, and what the optimizer keeps of them. */
export function trainedState(core: NativeCore, config: TrainerConfig, spec: ResolvedJobSpec): TrainedState {
  const { type, param_groups } = spec.train.optimizer;
  const params = core.paramTable(config.model).map(({ name, shape, numel, group }) => {
    const frozen = groupOf(param_groups, name)?.frozen ?? false;
    return { name, shape, numel, group, frozen };
  });
  return { params, optimizer: type, states: core.stateNames(config.optimizer) };
}
