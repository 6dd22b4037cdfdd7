import type { Estimate, ResolvedJobSpec } from '../../contracts/index.js';
import {
  architectureOf,
  estimateWorlds,
  feasibleWorldSizes,
  type Machine,
  numParams,
} from '../../job-document/index.js';
import { bestInstructionSet } from '../../platform/process/cpu.js';

interface EstimateRequest {
  spec: ResolvedJobSpec;
  /** Machine of the ranks; by default this one, with one thread and no GPU. */
  machine?: Partial<Machine>;
  /** Numbers of ranks; by default each possible one. */
  sizes?: readonly number[] | undefined;
}

/** Memory requirement of a job for each number of ranks. */
export function estimateMemory({ spec, machine: given = {}, sizes }: EstimateRequest): Estimate {
  const { device = 'cpu', threads = 1, instruction_set = bestInstructionSet() } = given;
  const machine = { device, threads, instruction_set };
  return {
    num_params: numParams(architectureOf(spec.model.config)),
    ...machine,
    data: estimateWorlds(spec, sizes ?? feasibleWorldSizes(spec), machine),
  };
}
