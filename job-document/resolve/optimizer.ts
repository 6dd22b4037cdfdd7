import type { FieldError, JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import type { Moment } from '../../contracts/state-records.js';
import { fieldError, withoutEffect } from '../common/field-error.js';

type Optimizer = NonNullable<NonNullable<JobSpec['train']>['optimizer']>;
type ResolvedOptimizer = ResolvedJobSpec['train']['optimizer'];
export type OptimizerType = ResolvedOptimizer['type'];

/** Fields of every type. */
const COMMON_FIELDS = ['type', 'lr', 'weight_decay', 'param_groups'] as const;

/** Additional fields of each type, with the defaults. Other fields do not exist for the type. */
const TYPE_DEFAULTS = {
  adamw: { weight_decay: 0.1, betas: [0.9, 0.95], eps: 1e-8 },
  adam: { weight_decay: 0, betas: [0.9, 0.95], eps: 1e-8 },
  lamb: {
    weight_decay: 0.1,
    betas: [0.9, 0.95],
    eps: 1e-6,
    min_coeff: 0.01,
    max_coeff: 10,
    bias_correction: 'update',
  },
  lion: { weight_decay: 0.1, betas: [0.9, 0.99] },
  adagrad: { weight_decay: 0, eps: 1e-10, lr_decay: 0, initial_accumulator_value: 0 },
  sgd: { weight_decay: 0, momentum: 0.9, dampening: 0, nesterov: false },
} as const satisfies Record<OptimizerType, Omit<Optimizer, 'betas'> & { betas?: readonly [number, number] }>;

/** Returns the names of all fields of a type. */
function optimizerFields(type: OptimizerType): ReadonlySet<string> {
  return new Set([...COMMON_FIELDS, ...Object.keys(TYPE_DEFAULTS[type])]);
}

/** Returns the optimizer states of each trained parameter besides its master weights. */
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

export function resolveOptimizer(given: Optimizer = {}): ResolvedOptimizer {
  const type = given.type ?? 'adamw';
  const defaults: Optimizer = structuredClone(TYPE_DEFAULTS[type]) as Optimizer;
  const merged = { lr: 1e-3, weight_decay: 0, ...defaults, ...given, type };
  const applying = optimizerFields(type);
  const fields = Object.entries(merged).filter(([name]) => applying.has(name));
  return {
    ...(Object.fromEntries(fields) as typeof merged),
    param_groups: (given.param_groups ?? []).map((group) => ({
      match: group.match,
      lr: group.lr ?? null,
      weight_decay: group.weight_decay ?? null,
      frozen: group.frozen ?? false,
    })),
  };
}

/** Refuses values that fp32, in which workers compute, rounds to a number with another meaning. */
function checkRounding({ betas, momentum = 0, eps = 1 }: ResolvedOptimizer): FieldError[] {
  const at = '/train/optimizer';
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
    ...withoutEffect(at, given, optimizerFields(type), `with the optimizer ${type}`),
    ...checkRounding(resolved),
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
