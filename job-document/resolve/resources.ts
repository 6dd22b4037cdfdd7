import type { FieldError, JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import { defaultsOf } from '../common/defaults.js';
import { fieldError } from '../common/field-error.js';
import { leafCount } from '../model/leaves.js';
import { checkMultiple } from './expert-sets.js';

export const DEFAULT_POOL = defaultsOf('ResourcesSpec').pool;

/** @param step the number of expert sets, of which the number of ranks is a multiple */
export function resolveResources(given: JobSpec['resources'] = {}, step = 1): ResolvedJobSpec['resources'] {
  const { ranks } = given;
  const preferred = ranks?.preferred ?? Math.ceil(Math.max(1, ranks?.min ?? 1) / step) * step;
  return { pool: given.pool ?? DEFAULT_POOL, ranks: { min: step, max: preferred, ...ranks, preferred } };
}

export function checkRanks({ resources: { ranks }, train, zero }: ResolvedJobSpec): FieldError[] {
  const leaves = leafCount(train);
  const { global_batch_size: batch, micro_batch_size: micro } = train;
  const errors = (['max', 'preferred', 'min'] as const).flatMap((name) =>
    checkMultiple(`/resources/ranks/${name}`, ranks[name], zero.expert_parallel_size),
  );
  // A micro-batch that does not divide the batch is reported by its own rule; its number of leaves would be
  // misleading.
  if (train.global_batch_size % train.micro_batch_size === 0) {
    for (const name of ['max', 'preferred', 'min'] as const) {
      if (ranks[name] <= leaves) continue;
      errors.push(
        fieldError(
          `/resources/ranks/${name}`,
          'too_many_ranks',
          `with train.global_batch_size ${batch} and micro_batch_size ${micro} at most ${leaves} ${leaves === 1 ? 'rank works' : 'ranks work'}; ` +
            `for ${ranks[name]} use a global_batch_size of ${ranks[name] * micro}`,
          String(leaves),
        ),
      );
    }
  }
  if (ranks.min > ranks.preferred || ranks.preferred > ranks.max) {
    errors.push(
      fieldError(
        '/resources/ranks',
        'ranks_out_of_order',
        `min ≤ preferred ≤ max does not hold for ${ranks.min}, ${ranks.preferred}, ${ranks.max}`,
      ),
    );
  }
  return errors;
}
