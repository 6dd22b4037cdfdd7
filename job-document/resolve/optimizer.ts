import type { FieldError, JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import type { Moment, StateName } from '../../contracts/state-records.js';
import { defaultsOf, fieldsOfType, filledByType, typesOf } from '../common/defaults.js';
import { fieldError, withoutEffect } from '../common/field-error.js';

type Optimizer = NonNullable<NonNullable<JobSpec['train']>['optimizer']>;
type ResolvedTrain = ResolvedJobSpec['train'];
type ResolvedOptimizer = ResolvedTrain['optimizer'];
export type OptimizerType = ResolvedOptimizer['type'];

/** All optimizers, as the schema of the document declares them. */
export const OPTIMIZER_TYPES = typesOf('OptimizerSpec') as readonly OptimizerType[];

/** Returns the states of each trained parameter besides its master weights. */
export function extraStatesOf({ optimizer, ema }: Pick<ResolvedTrain, 'optimizer' | 'ema'>): StateName[] {
  return [...momentsOf(optimizer), ...(ema ? (['ema'] as const) : [])];
}

/** Returns the states of each trained parameter that the optimizer's rule reads, besides its master weights. */
export function momentsOf({ type, momentum }: Pick<ResolvedOptimizer, 'type' | 'momentum'>): Moment[] {
  switch (type) {
    case 'adamw':
    case 'adam':
    case 'lamb':
      return ['exp_avg', 'exp_avg_sq'];
    case 'lion':
      return ['exp_avg'];
    case 'adagrad':
      return ['sum'];
    case 'sgd':
      return momentum === 0 ? [] : ['momentum_buffer'];
  }
}

/** Resolves the sections of `train` that decide an update. */
export function resolveUpdate<Given extends Pick<NonNullable<JobSpec['train']>, 'optimizer' | 'ema'>>({
  optimizer,
  ema,
  ...train
}: Given) {
  return {
    ...train,
    optimizer: resolveOptimizer(optimizer),
    ...(ema && { ema: { ...defaultsOf('EmaSpec'), ...ema } }),
  };
}

/** Checks that a job has the weights that a field selects. @param pointer of the field */
export function checkWeights(
  train: Pick<ResolvedTrain, 'optimizer' | 'ema'>,
  weights: ResolvedJobSpec['export']['weights'],
  pointer: string,
): FieldError[] {
  if (weights === 'trained' || extraStatesOf(train).includes(weights)) return [];
  const message = 'the job has no average of its weights, which train.ema keeps';
  return [fieldError(pointer, 'weights_missing', message, 'trained')];
}

export function resolveOptimizer(given: Optimizer = {}): ResolvedOptimizer {
  const { type, param_groups } = { ...defaultsOf('OptimizerSpec'), ...given };
  return {
    ...filledByType<ResolvedOptimizer>('OptimizerSpec', { ...(given as Partial<ResolvedOptimizer>), type }),
    param_groups: param_groups.map((group) => ({
      ...defaultsOf('ParamGroupSpec'),
      lr: null,
      weight_decay: null,
      ...group,
    })),
  };
}

/**
 * Refuses values that fp32, in which workers compute, rounds to a number with another meaning.
 * @param at JSON pointer of the values
 */
export function checkRounding(
  at: string,
  { betas, momentum = 0, eps = 1 }: Pick<Optimizer, 'betas' | 'momentum' | 'eps'>,
): FieldError[] {
  const below1 = (field: string, value: number) =>
    Math.fround(value) < 1
      ? []
      : [
          fieldError(
            `${at}/${field}`,
            'out_of_range',
            `${value} is 1 in fp32; the largest below 1 is ${BELOW_1}`,
            BELOW_1,
          ),
        ];
  const above0 = (field: string, value: number) =>
    value === 0 || Math.fround(value) > 0
      ? []
      : [
          fieldError(
            `${at}/${field}`,
            'out_of_range',
            `${value} is 0 in fp32; the smallest above 0 is ${ABOVE_0}`,
            ABOVE_0,
          ),
        ];
  return [
    ...(betas ?? []).flatMap((beta, index) => below1(`betas/${index}`, beta)),
    ...below1('momentum', momentum),
    ...above0('momentum', momentum),
    ...above0('eps', eps),
  ];
}
const BELOW_1 = '0.99999994';
const ABOVE_0 = '1.4e-45';

/** @param given the optimizer of the document, to find fields without effect */
export function checkOptimizer(given: Optimizer | undefined, resolved: ResolvedOptimizer): FieldError[] {
  const { type, momentum, dampening, nesterov, min_coeff = 0, max_coeff = Infinity } = resolved;
  const at = '/train/optimizer';
  const errors = [
    ...withoutEffect(at, given, fieldsOfType('OptimizerSpec', type), `with the optimizer ${type}`),
    ...checkRounding(at, resolved),
  ];
  if (nesterov && (momentum === 0 || dampening !== 0)) {
    errors.push(
      fieldError(
        `${at}/nesterov`,
        'nesterov_without_momentum',
        'Nesterov momentum needs a momentum above 0 and a dampening of 0',
        'false',
      ),
    );
  }
  if (min_coeff > max_coeff) {
    errors.push(
      fieldError(
        `${at}/min_coeff`,
        'min_coeff_above_max_coeff',
        `min_coeff ${min_coeff} is greater than max_coeff ${max_coeff}`,
        String(max_coeff),
      ),
    );
  }
  return errors;
}
