import type { Estimate, ResolvedJobSpec } from '../../contracts/index.js';
import {
  architectureOf,
  estimateWorld,
  feasibleWorldSizes,
  type Machine,
  numParams,
} from '../../job-document/index.js';
import { bestInstructionSet } from '../../platform/process/cpu.js';

/** Memory requirement of a job for each number of ranks; without `sizes`, for each possible number. */
export function estimateOf(
  spec: ResolvedJobSpec,
  { device = 'cpu', threads = 1, instruction_set = bestInstructionSet() }: Partial<Machine> = {},
  sizes: readonly number[] = feasibleWorldSizes(spec),
): Estimate {
  const machine = { device, threads, instruction_set };
  return {
    num_params: numParams(architectureOf(spec.model.config)),
    ...machine,
    data: sizes.map((size) => estimateWorld(spec, size, machine)),
  };
}
