import type { ResolvedParamGroup } from '../../contracts/index.js';
import type { StartMessage } from '../../contracts/rank-protocol.js';
import { estimateRank, preferencesOf, takesCalls, trainedArchitecture } from '../../job-document/index.js';
import type { TrainerConfig } from '../shared/native/adapter.js';

/** Returns the native core's configuration of one rank. */
export function trainerConfig(start: StartMessage): TrainerConfig {
  const { train, zero, data } = start.spec;
  const { optimizer, steps } = train;
  const [beta1, beta2] = optimizer.betas ?? [];
  return {
    ...train,
    // The core's fields are those of an architecture.
    model: trainedArchitecture(start.spec),
    device: start.device,
    reserved_bytes: reservedBytes(start),
    rank: start.rank,
    world_size: start.world_size,
    threads: start.threads,
    preference: preferencesOf(train),
    session: takesCalls(train),
    // A session has no schedule that ends.
    steps: steps ?? 1,
    data_seed: data.seed,
    optimizer: { ...optimizer, beta1, beta2 },
    param_groups: paramGroups(optimizer),
    zero,
    training_files: start.training_files.map(({ path, weight }) => ({ path, weight })),
    evaluation_files: start.evaluation_files.map(({ paths }) => paths),
    comm: { backend: backendOf(start), ...start.comm },
  };
}

/** Returns the GPU memory that this rank reserves, by the estimate of its placement. */
function reservedBytes({ spec, world_size, rank, device }: StartMessage): number {
  if (device === 'cpu') return 0;
  return estimateRank(spec, world_size, rank, { device, threads: 1, instruction_set: 'generic' }).total;
}

function backendOf({ world_size, device }: StartMessage): TrainerConfig['comm']['backend'] {
  if (world_size === 1) return 'solo';
  return device === 'cuda' ? 'nccl' : 'gloo';
}

type OptimizerSpec = StartMessage['spec']['train']['optimizer'];

/** Converts a group's own rate to a factor of the optimizer's rate, which the schedule changes. */
function paramGroups({ lr: peak, param_groups }: OptimizerSpec): TrainerConfig['param_groups'] {
  const groups: ResolvedParamGroup[] = param_groups;
  return groups.map(({ lr, ...group }) => ({ ...group, lr_scale: lr === null ? 1 : lr / peak }));
}
