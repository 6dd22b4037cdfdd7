import type {
  FieldError,
  ResolvedJobSpec,
  ResolvedModelConfig,
  ResolvedParamGroup,
} from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';
import { trainedArchitecture } from '../model/adapters.js';
import { NamePattern } from '../model/name-pattern.js';
import { countOf, type ParamKind, paramKinds, paramName } from '../model/params.js';
import { ParamSet } from './param-set.js';

/**
 * Matches a pattern against a whole name: `*` stands for any run of characters, `?` for one; every other
 * character for itself.
 */
export function globMatches(pattern: string, name: string): boolean {
  // The classic algorithm with one backtracking point: its time is bounded by the product of the two lengths.
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

/** Returns the first matching entry of a parameter, or undefined. */
export function groupOf(groups: readonly ResolvedParamGroup[], name: string): ResolvedParamGroup | undefined {
  return groups.find(({ match }) => globMatches(match, name));
}

/** Effect of `param_groups` on the parameters of a kind. */
export interface SplitKind {
  kind: ParamKind;
  frozen: ParamSet;
  numFrozen: number;
  /** Number of frozen parameters of each expert; a single number without experts. */
  frozenByExpert: readonly number[];
}

interface Split {
  kinds: readonly SplitKind[];
  /** Entries that apply to at least one parameter. */
  used: ReadonlySet<ResolvedParamGroup>;
}

/**
 * Cache of the last result for a configuration: the memory of one document is estimated for many numbers of
 * ranks.
 */
const lastSplits = new WeakMap<
  ResolvedModelConfig,
  {
    groups: readonly ResolvedParamGroup[];
    adapter: ResolvedJobSpec['train']['adapter'];
    split: Split;
  }
>();

/** Returns the parameters of a model by kind, with the frozen ones. */
export function splitParams(spec: Pick<ResolvedJobSpec, 'model' | 'train'>): readonly SplitKind[] {
  return splitOf(spec).kinds;
}

function splitOf({ model, train }: Pick<ResolvedJobSpec, 'model' | 'train'>): Split {
  const groups: readonly ResolvedParamGroup[] = train.optimizer.param_groups;
  const { adapter } = train;
  const last = lastSplits.get(model.config);
  if (last?.groups === groups && last.adapter === adapter) return last.split;
  const split = splitKinds(paramKinds(trainedArchitecture({ model, train })), groups);
  lastSplits.set(model.config, { groups, adapter, split });
  return split;
}

/** Assigns to each entry its matches among the parameters that earlier entries have left. */
function splitKinds(kinds: readonly ParamKind[], groups: readonly ResolvedParamGroup[]): Split {
  const sets = kinds.map((kind) => ({
    left: ParamSet.all(kind),
    frozen: kind.frozen ? ParamSet.all(kind) : ParamSet.none(kind),
  }));
  const used = groups.filter(({ match, frozen: freezes }) => {
    const pattern = new NamePattern(match);
    const took = sets.map(({ left, frozen }) =>
      left.remove(pattern.rowsOf(left.kind), freezes ? frozen : undefined),
    );
    return took.includes(true);
  });
  return { kinds: sets.map(({ frozen }) => counted(frozen)), used: new Set(used) };
}

function counted(frozen: ParamSet): SplitKind {
  const frozenByExpert = frozen.countByExpert();
  const numFrozen = frozenByExpert.reduce((sum, count) => sum + count, 0);
  return { kind: frozen.kind, frozen, numFrozen, frozenByExpert };
}

export function checkParamGroups(spec: ResolvedJobSpec): FieldError[] {
  const groups: readonly ResolvedParamGroup[] = spec.train.optimizer.param_groups;
  const { kinds, used } = splitOf(spec);
  const errors = groups.flatMap((group, index) => [
    ...checkSettings(group, index),
    ...(used.has(group) ? [] : [unmatched(groups, index, kinds)]),
  ]);
  if (kinds.every(({ kind, numFrozen }) => numFrozen === countOf(kind))) {
    errors.push(
      fieldError(
        '/train/optimizer/param_groups',
        'all_parameters_frozen',
        'every parameter of the model is frozen; at least one must be trained',
      ),
    );
  }
  return errors;
}

/**
 * Returns the name of a parameter that is frozen by only one of two documents; null if there is none. Their
 * models have the same shapes.
 */
export function frozenDifference(a: readonly SplitKind[], b: readonly SplitKind[]): string | null {
  for (const [i, { frozen }] of a.entries()) {
    const name = frozen.difference((b[i] as SplitKind).frozen);
    if (name !== null) return name;
  }
  return null;
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
  kinds: readonly SplitKind[],
): FieldError {
  const pattern = groups[index]?.match ?? '';
  const name = firstMatch(new NamePattern(pattern), kinds);
  const example = kinds[1] && paramName(kinds[1].kind, 0, 0);
  return fieldError(
    `/train/optimizer/param_groups/${index}/match`,
    'param_group_unmatched',
    name === null
      ? `${pattern} matches no parameter of the model; an example of a name is ${example}`
      : `earlier entries match every parameter that ${pattern} matches; the first parameter is matched by entry ${groups.findIndex(({ match }) => globMatches(match, name))}`,
  );
}

function firstMatch(pattern: NamePattern, kinds: readonly SplitKind[]): string | null {
  for (const { kind } of kinds) {
    const rows = pattern.rowsOf(kind);
    const layer = rows.findIndex((row) => row !== null);
    if (layer >= 0) return paramName(kind, layer, firstBit(rows[layer] as Int32Array));
  }
  return null;
}

function firstBit(words: Int32Array): number {
  const at = words.findIndex((word) => word !== 0);
  return 32 * at + 31 - Math.clz32((words[at] as number) & -(words[at] as number));
}
