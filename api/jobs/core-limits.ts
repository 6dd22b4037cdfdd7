import type { FieldError, ResolvedJobSpec } from '../../contracts/index.js';

/** Whether a document is within what the native core of this version trains, field by field. */
const LIMITS: readonly [pointer: string, isWithin: (spec: ResolvedJobSpec) => boolean][] = [
  ['/train/optimizer/param_groups', ({ train }) => train.optimizer.param_groups.length === 0],
  ['/train/gradient_clipping_norm', ({ train }) => train.gradient_clipping_norm === 'l2'],
  ['/train/precision', ({ train }) => train.precision !== 'fp16'],
  ['/train/loss_scale/type', ({ train }) => train.loss_scale.type === 'none'],
  ['/zero/reduce_dtype', ({ zero }) => zero.reduce_dtype !== 'fp16'],
  ['/zero/grad_accum_dtype', ({ zero }) => zero.grad_accum_dtype === 'fp32'],
  ['/zero/master_dtype', ({ zero }) => zero.master_dtype === 'fp32'],
  ['/zero/gradient_predivide_factor', ({ zero }) => zero.gradient_predivide_factor === 1],
  ['/zero/numerics', ({ zero }) => zero.numerics === 'exact'],
];

/** The fields that ask for more than this version's native core can do. */
export function beyondTheCore(spec: ResolvedJobSpec): FieldError[] {
  return LIMITS.filter(([, isWithin]) => !isWithin(spec)).map(([pointer]) => ({
    pointer,
    code: 'not_supported',
    message: 'the native core of this version cannot do this',
  }));
}
