// Selects deep suites by the arguments of `npm run test:deep`.
import { SetupError } from '../bootstrap/errors.mjs';
import { changedSince, commitBefore, reachOfSuites, wasDeleted } from './affected/changes.mjs';
import { selectAffected } from './affected/select.mjs';
import { describePlan, planSuites, turnOfDay } from './plan.mjs';
import { deepSuites } from './suites.mjs';

const PARTS = ['native', 'infra', 'typescript'];
/** Stands before the preset in the name of a native suite. */
const NATIVE_PREFIX = /^native /;

/** @returns {string | null} the revision to compare with; null selects all suites */
function baseOf({ changed, 'changed-hours': hours }) {
  if (changed !== undefined) return changed;
  if (hours === undefined) return null;
  const commit = commitBefore(Number(hours));
  if (commit === null)
    console.log(
      `\nall suites are selected: no commit over ${hours} hours old is in this clone, or it is shallow`,
    );
  return commit;
}

/** Prints the selection. */
function selectSuites(suites, base, turn) {
  const changed = changedSince(base);
  const selection = selectAffected(changed, reachOfSuites(changed), wasDeleted);
  const plan = planSuites(suites, selection, turn);
  for (const line of describePlan(plan, base, selection.ignored)) console.log(line);
  return plan.rounds;
}

/**
 * @param {string[]} words see `deepSuites`
 * @param {{changed?: string, 'changed-hours'?: string, 'and-third-of-day': boolean, list: boolean}} options
 * @returns {{part: string, suites: string[]}[]} what runs, one after another
 * @throws SetupError
 */
export function planDeepTests(words, options) {
  const suites = deepSuites(words);
  const base = baseOf(options);
  const isSelective = options.changed !== undefined || options['changed-hours'] !== undefined;
  if (options['and-third-of-day'] && !isSelective)
    throw new SetupError('--and-third-of-day adds to --changed or --changed-hours');
  const turn = options['and-third-of-day'] ? turnOfDay(Date.now()) : null;
  const rounds = base === null ? [suites] : selectSuites(suites, base, turn);
  if (base === null && options.list) for (const { name } of suites) console.log(`  selected: ${name}`);
  return rounds.flatMap((round) =>
    PARTS.map((part) => ({
      part,
      suites: round.filter((suite) => suite.part === part).map(({ name }) => name.replace(NATIVE_PREFIX, '')),
    })).filter(({ suites: some }) => some.length > 0),
  );
}
