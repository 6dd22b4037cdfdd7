import {
  type Estimate,
  estimateWorld,
  feasibleWorldSizes,
  type InstructionSet,
  numParams,
  type ResolvedJobSpec,
} from '../../contracts/index.js';
import { bestInstructionSet } from '../../platform/cpu.js';

export interface Machine {
  threads: number;
  instruction_set: InstructionSet;
}

/** The memory that a job needs, for each number of ranks; without `sizes` for each that is possible. */
export function estimateOf(
  spec: ResolvedJobSpec,
  { threads = 1, instruction_set = bestInstructionSet() }: Partial<Machine> = {},
  sizes: readonly number[] = feasibleWorldSizes(spec),
): Estimate {
  const machine = { threads, instruction_set };
  return {
    num_params: numParams(spec),
    ...machine,
    data: sizes.map((size) => estimateWorld(spec, size, machine)),
  };
}
