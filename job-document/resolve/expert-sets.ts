/**
 * Expert sets: P adjacent ranks hold all experts together and compute P leaves at the same time, so P divides
 * the numbers of experts, leaves, lanes and ranks.
 */
import type { FieldError, ResolvedJobSpec } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';
import { architectureOf } from '../model/families/families.js';
import { leafCount } from '../model/leaves.js';

const POINTER = '/zero/expert_parallel_size';

export function checkExpertSets(spec: ResolvedJobSpec): FieldError[] {
  const { zero, model, train } = spec;
  const numSets = zero.expert_parallel_size;
  if (numSets === 1) return [];
  const { num_experts: experts } = architectureOf(model.config);
  if (experts === 0) {
    const why = `the model (${model.config.model_type}) has no experts`;
    return [fieldError(POINTER, 'model_has_no_experts', why, '1')];
  }
  const leaves = leafCount(train);
  // A micro-batch that does not divide the batch is reported by its own rule.
  const parts = { experts, ...(train.global_batch_size % train.micro_batch_size === 0 && { leaves }) };
  const [broken] = Object.entries(parts).filter(([, count]) => count % numSets !== 0);
  if (broken === undefined) return checkLanes(spec);
  const [part, count] = broken;
  const noun = part === 'leaves' ? 'leaves (global_batch_size / micro_batch_size)' : 'experts of the model';
  return [
    fieldError(
      POINTER,
      'expert_parallel_not_divisor',
      `expert_parallel_size ${numSets} does not divide the ${count} ${noun}`,
      String(commonDivisor(Object.values(parts), numSets)),
    ),
  ];
}

/** @param value of a field that must be a multiple of the number of sets */
export function checkMultiple(pointer: string, value: number, numSets: number): FieldError[] {
  if (value % numSets === 0) return [];
  return [
    fieldError(
      pointer,
      'expert_parallel_not_divisor',
      `${value} is not a multiple of zero.expert_parallel_size ${numSets}`,
      String(Math.max(numSets, value - (value % numSets))),
    ),
  ];
}

function checkLanes({ zero }: ResolvedJobSpec): FieldError[] {
  const { stage, lanes = zero.expert_parallel_size } = zero;
  return stage === 1 ? checkMultiple('/zero/lanes', lanes, zero.expert_parallel_size) : [];
}

/** Returns the largest number up to `atMost` that divides all of them. */
function commonDivisor(counts: readonly number[], atMost: number): number {
  for (let divisor = atMost; divisor > 1; divisor -= 1) {
    if (counts.every((count) => count % divisor === 0)) return divisor;
  }
  return 1;
}
