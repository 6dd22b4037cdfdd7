import type { FieldError, ResolvedJobSpec, ResolvedParamGroup } from '../index.js';
import { architectureOf } from '../model/index.js';
import { type ModelParam, modelParams } from '../model-params.js';
import { fieldError } from './field-error.js';

/** A pattern for whole names: `*` stands for any run of characters, `?` for one; every other character for itself. */
export function globMatches(pattern: string, name: string): boolean {
  // The classic walk with one point to go back to: its time is bounded by the product of the two lengths.
  let [p, n, star, resume] = [0, 0, -1, 0];
  while (n < name.length) {
    if (p < pattern.length && (pattern[p] === '?' || (pattern[p] === name[n] && pattern[p] !== '*'))) {
      p += 1;
      n += 1;
    } else if (pattern[p] === '*') {
      star = p;
      resume = n;
      p += 1;
    } else if (star >= 0) {
      p = star + 1;
      resume += 1;
      n = resume;
    } else {
      return false;
    }
  }
  while (pattern[p] === '*') p += 1;
  return p === pattern.length;
}

/** The entry that counts for a parameter: the first that matches, or undefined. */
export function groupOf(groups: readonly ResolvedParamGroup[], name: string): ResolvedParamGroup | undefined {
  return groups.find(({ match }) => globMatches(match, name));
}

/** The parameters that an optimizer's `param_groups` freeze, and the others. */
export function splitFrozen(
  params: readonly ModelParam[],
  groups: readonly ResolvedParamGroup[],
): { trained: ModelParam[]; frozen: ModelParam[] } {
  const isFrozen = ({ name }: ModelParam) => groupOf(groups, name)?.frozen === true;
  return { trained: params.filter((param) => !isFrozen(param)), frozen: params.filter(isFrozen) };
}

export function checkParamGroups({ model, train }: ResolvedJobSpec): FieldError[] {
  const groups: readonly ResolvedParamGroup[] = train.optimizer.param_groups;
  if (groups.length === 0) return [];
  const params = modelParams(architectureOf(model.config));
  const used = new Set(params.map(({ name }) => groupOf(groups, name)));
  const errors = groups.flatMap((group, index) => [
    ...checkSettings(group, index),
    ...(used.has(group) ? [] : [unmatched(groups, index, params)]),
  ]);
  if (splitFrozen(params, groups).trained.length === 0) {
    errors.push(
      fieldError(
        '/train/optimizer/param_groups',
        'all_parameters_frozen',
        'every parameter of the model is frozen; there is nothing to train',
      ),
    );
  }
  return errors;
}

function checkSettings({ lr, weight_decay, frozen }: ResolvedParamGroup, index: number): FieldError[] {
  if (!frozen) return [];
  return Object.entries({ lr, weight_decay })
    .filter(([, value]) => value !== null)
    .map(([name]) =>
      fieldError(
        `/train/optimizer/param_groups/${index}/${name}`,
        'field_without_effect',
        `${name} has no effect on frozen parameters`,
      ),
    );
}

function unmatched(
  groups: readonly ResolvedParamGroup[],
  index: number,
  params: readonly ModelParam[],
): FieldError {
  const pattern = groups[index]?.match ?? '';
  const matches = params.find(({ name }) => globMatches(pattern, name));
  const first = groups.findIndex(({ match }) => matches && globMatches(match, matches.name));
  return fieldError(
    `/train/optimizer/param_groups/${index}/match`,
    'param_group_unmatched',
    matches === undefined
      ? `no parameter of the model has a name like ${pattern}; names are such as ${params[1]?.name}`
      : `every parameter that ${pattern} matches is taken by an entry before it, the first one by entry ${first}`,
  );
}
