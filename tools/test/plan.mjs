// The deep suites of a run, and their order.
import { createHash } from 'node:crypto';

/** @typedef {import('./suites.mjs').Suite} Suite */

const TURNS = 3;
const DAY_MS = 86_400_000;

/** @param {number} nowMs Unix time @returns {number} the turn (from 0) of that day (UTC) */
export const turnOfDay = (nowMs) => Math.floor(nowMs / DAY_MS) % TURNS;

/** The turn of a suite. It depends on its name alone, so that new suites do not shift it. */
export const turnOf = (name) => createHash('sha256').update(name).digest().readUInt32BE() % TURNS;

/**
 * @param {Suite[]} suites in the order in which they would all run
 * @param {{affected: import('./affected/select.mjs').Affected[], unaffected: {suite: string, reason: string}[]}}
 *   selection
 * @param {number | null} turn adds unaffected suites of this turn in a second round; null adds none
 * @returns {{rounds: Suite[][], chosen: {name: string, reason: string}[], left: {name: string, reason: string}[]}}
 *   `rounds` run one after another. In the first one, suites nearest to a change begin first
 */
export function planSuites(suites, { affected, unaffected }, turn = null) {
  const near = new Map(affected.map((entry) => [entry.suite, entry]));
  const why = new Map(unaffected.map(({ suite, reason }) => [suite, reason]));
  const distance = ({ name }) => Math.min(near.get(name).distance, Number.MAX_SAFE_INTEGER);
  const first = suites.filter(({ name }) => near.has(name)).sort((a, b) => distance(a) - distance(b));
  const others = suites.filter(({ name }) => !near.has(name));
  const second = others.filter(({ name }) => turnOf(name) === turn);
  const turns = (name) => `turn ${turnOf(name) + 1} of ${TURNS}`;
  const chosen = [
    ...first.map(({ name }) => ({ name, reason: near.get(name).reason })),
    ...second.map(({ name }) => ({ name, reason: `${turns(name)} is today` })),
  ];
  const left = others
    .filter((suite) => !second.includes(suite))
    .map(({ name }) => ({
      name,
      reason: turn === null ? why.get(name) : `${why.get(name)}; ${turns(name)} is another day`,
    }));
  return { rounds: [first, second].filter((round) => round.length > 0), chosen, left };
}

/**
 * @param {ReturnType<typeof planSuites>} plan
 * @param {string} since what the changes are compared with
 * @param {{file: string, why: string}[]} ignored changed files that affect no suite
 * @returns {string[]} lines that name each suite with a reason
 */
export function describePlan({ chosen, left }, since, ignored) {
  return [
    `\n${chosen.length} of ${chosen.length + left.length} suites selected by the changes since ${since}`,
    ...ignored.map(({ file, why }) => `  affects none: ${file}: ${why}`),
    ...left.map(({ name, reason }) => `  not affected: ${name}: ${reason}`),
    ...chosen.map(({ name, reason }) => `  selected: ${name}: ${reason}`),
  ];
}
