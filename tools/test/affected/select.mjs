// Selects the deep suites that changed files can affect. A suite needs the files that it reaches in the graph of
// sources (tools/graph/source-graph.mjs). A file that no suite reaches affects no suite if a rule of edges.mjs says so,
// otherwise every suite.
import { distancesFrom } from '../../graph/source-graph.mjs';
import { AFFECTS_EVERYTHING, AFFECTS_NOTHING, BELONGS_TO_TESTS } from './edges.mjs';

/**
 * @typedef {{suite: string, distance: number, reason: string}} Affected `distance`: edges from the suite to the nearest
 * change
 */

/** The files that each suite needs. */
export class Reach {
  #distances;
  #inQuickTests = new Set();

  /**
   * @param {import('../../graph/source-graph.mjs').Graph} graph
   * @param {string[]} suites nodes of the graph
   * @param {string[]} quickTests nodes of the graph
   */
  constructor(graph, suites, quickTests) {
    this.#distances = new Map(suites.map((suite) => [suite, distancesFrom(graph, suite)]));
    for (const test of quickTests)
      for (const file of distancesFrom(graph, test).keys()) this.#inQuickTests.add(file);
  }

  get suites() {
    return [...this.#distances.keys()];
  }

  /** @returns {number | undefined} */
  distance(suite, file) {
    return this.#distances.get(suite)?.get(file);
  }

  /** @returns {number} of files that the suite needs */
  size(suite) {
    return this.#distances.get(suite)?.size ?? 0;
  }

  /** @returns {{affects: 'everything' | 'suites' | 'nothing', why: string}} what a change of the file affects */
  classify(file, { isDeleted = false } = {}) {
    if (AFFECTS_EVERYTHING.test(file)) return { affects: 'everything', why: 'every suite depends on it' };
    const count = this.suites.filter((suite) => this.distance(suite, file) !== undefined).length;
    if (count > 0) return { affects: 'suites', why: `${count} suites reach it` };
    const rule = AFFECTS_NOTHING.find(({ files }) => files.test(file));
    if (rule) return { affects: 'nothing', why: rule.why };
    if (this.#inQuickTests.has(file) && BELONGS_TO_TESTS.test(file))
      return { affects: 'nothing', why: 'only quick tests reach it' };
    if (isDeleted) return { affects: 'nothing', why: 'deleted, and nothing refers to it' };
    return { affects: 'everything', why: 'no rule knows what depends on it' };
  }
}

/**
 * @param {string[]} changed files
 * @param {Reach} reach
 * @param {(file: string) => boolean} [isDeleted]
 * @returns {{affected: Affected[], unaffected: {suite: string, reason: string}[], ignored: {file: string, why:
 *   string}[]}} `affected`: the nearest first; `ignored`: changed files that affect no suite
 */
export function selectAffected(changed, reach, isDeleted = () => false) {
  const kinds = changed.map((file) => ({ file, ...reach.classify(file, { isDeleted: isDeleted(file) }) }));
  const global = kinds.find(({ affects }) => affects === 'everything');
  const [affected, unaffected] = [[], []];
  for (const suite of reach.suites) {
    const [nearest] = changed
      .map((file) => ({ file, distance: reach.distance(suite, file) ?? Infinity }))
      .sort((a, b) => a.distance - b.distance);
    if (nearest && nearest.distance < Infinity) {
      const { file, distance } = nearest;
      affected.push({ suite, distance, reason: distance === 0 ? 'changed itself' : `needs ${file}` });
    } else if (global) affected.push({ suite, distance: Infinity, reason: `${global.file}: ${global.why}` });
    else
      unaffected.push({
        suite,
        reason: `needs none of the changed files, but ${reach.size(suite) - 1} others`,
      });
  }
  affected.sort((a, b) => (a.distance === b.distance ? 0 : a.distance - b.distance));
  return { affected, unaffected, ignored: kinds.filter(({ affects }) => affects === 'nothing') };
}
