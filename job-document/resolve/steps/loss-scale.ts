import type { FieldError, JobSpec, ResolvedJobSpec } from '../../../contracts/index.js';
import { fieldsOfType, filledByType } from '../../common/defaults.js';
import { fieldError, withoutEffect } from '../../common/field-error.js';

type LossScale = NonNullable<NonNullable<JobSpec['train']>['loss_scale']>;
type ResolvedLossScale = ResolvedJobSpec['train']['loss_scale'];
type Override = ResolvedJobSpec['train']['overrides'][number];

export function resolveLossScale(
  given: LossScale = {},
  precision: ResolvedJobSpec['train']['precision'],
): ResolvedLossScale {
  const type = given.type ?? (precision === 'fp16' ? 'dynamic' : 'none');
  return filledByType<ResolvedLossScale>('LossScaleSpec', { ...given, type });
}

/** @param given the loss scale of the document, to find fields without effect */
export function checkLossScale(given: LossScale | undefined, spec: ResolvedJobSpec): FieldError[] {
  const { type, initial_scale = Infinity, min_scale = 0 } = spec.train.loss_scale;
  const at = '/train/loss_scale';
  const errors = withoutEffect(at, given, fieldsOfType('LossScaleSpec', type), `with the loss scale ${type}`);
  if (type !== 'none' && !usesFp16(spec)) {
    errors.push(
      fieldError(
        `${at}/type`,
        'loss_scale_without_fp16',
        'a loss scale prevents small gradients from vanishing in fp16, and neither train.precision nor ' +
          'zero.reduce_dtype nor zero.grad_accum_dtype is fp16',
        'none',
      ),
    );
  }
  if (min_scale > initial_scale) {
    errors.push(
      fieldError(
        `${at}/min_scale`,
        'min_scale_above_initial_scale',
        `min_scale ${min_scale} is greater than initial_scale ${initial_scale}`,
        String(initial_scale),
      ),
    );
  }
  return errors;
}

/** Returns whether gradients pass through fp16 anywhere. */
function usesFp16({ train, zero }: ResolvedJobSpec): boolean {
  return [train.precision, zero.reduce_dtype, zero.grad_accum_dtype].includes('fp16');
}

export function checkOverrides({
  overrides,
  steps = Infinity,
  loss_scale,
  optimizer,
}: ResolvedJobSpec['train']): FieldError[] {
  return overrides.flatMap((override, index) => [
    ...checkStep(overrides, index, steps),
    ...checkGroups(override, index, optimizer.param_groups),
    ...(override.loss_scale !== undefined && loss_scale.type === 'none'
      ? [
          fieldError(
            `/train/overrides/${index}/loss_scale`,
            'field_without_effect',
            'loss_scale has no effect with the loss scale none',
          ),
        ]
      : []),
  ]);
}

/** Checks that the rates are those of groups that are trained. */
function checkGroups(
  { group_lr = {} }: Override,
  index: number,
  groups: ResolvedJobSpec['train']['optimizer']['param_groups'],
): FieldError[] {
  return Object.keys(group_lr).flatMap((match) => {
    const group = groups.find((other) => other.match === match);
    if (group !== undefined && group.frozen !== true) return [];
    const list = groups.filter(({ frozen }) => frozen !== true).map((other) => JSON.stringify(other.match));
    const message =
      group === undefined
        ? `${JSON.stringify(match)} is not the match of an entry of train.optimizer.param_groups (${list.join(', ') || 'there is none'})`
        : `the parameters of ${JSON.stringify(match)} are frozen and have no learning rate`;
    return [fieldError(`/train/overrides/${index}/group_lr`, 'param_group_unmatched', message)];
  });
}

function checkStep(overrides: readonly Override[], index: number, steps: number): FieldError[] {
  const step = overrides[index]?.step ?? 0;
  const before = overrides[index - 1]?.step ?? -1;
  const at = `/train/overrides/${index}/step`;
  if (step <= before) {
    return [
      fieldError(
        at,
        'overrides_not_ascending',
        `step ${step} is not greater than the previous step ${before}`,
      ),
    ];
  }
  if (step >= steps) {
    return [
      fieldError(
        at,
        'override_after_training',
        `step ${step} is not below steps ${steps}`,
        String(steps - 1),
      ),
    ];
  }
  return [];
}
