import type { ResolvedJobSpec } from '../../contracts/index.js';
import type { TrainedState } from '../checkpoint/fit.js';
import type { NativeCore, TrainerConfig } from '../native/adapter.js';

/** What a job trains: the model's parameters in canonical order, and what the optimizer keeps of them. */
export function trainedState(core: NativeCore, config: TrainerConfig, spec: ResolvedJobSpec): TrainedState {
  const params = core
    .paramTable(config.model)
    .map(({ name, shape, numel, group }) => ({ name, shape, numel, group, frozen: false }));
  return { params, optimizer: spec.train.optimizer.type, states: core.stateNames(config.optimizer) };
}
