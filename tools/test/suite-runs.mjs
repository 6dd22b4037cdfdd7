/**
 * @typedef {{passed: number, failed: number, skipped?: number, output?: string}} Result counts of test cases, and the
 * full output
 */

/**
 * No new suite begins in this last part of the time limit. It is left for suites in progress, and for running failures
 * again.
 */
const RESERVE_MS = 180_000;

/**
 * Collects the results of a command's suites. With `retries`, a failed suite runs once more after all others, alone. If
 * it passes then, only the second result counts, and both outputs are printed. Suites for which too little time was
 * left are named at the end.
 */
export class SuiteRuns {
  #end;
  #reserveMs;
  #retries;
  #log;
  #results = [];
  #failures = [];
  #notRun = [];
  #background = [];

  /** @param {{within_s?: number, reserve_ms?: number, retries?: boolean, log?: (line: string) => void}} [options] */
  constructor({ within_s = Infinity, reserve_ms = RESERVE_MS, retries = false, log = console.log } = {}) {
    this.#end = performance.now() + within_s * 1000;
    this.#reserveMs = reserve_ms;
    this.#retries = retries;
    this.#log = log;
  }

  /**
   * @param {number} seconds that a suite takes @returns {boolean} whether the suite may begin: it would end within the
   * time limit
   */
  hasTimeFor(seconds) {
    return performance.now() + Math.max(seconds * 1000, this.#reserveMs) < this.#end;
  }

  /** @param {string} name of a suite that does not begin */
  skip(name) {
    this.#notRun.push(name);
  }

  /**
   * @param {string} name of the suite
   * @param {() => Promise<Result>} run
   * @param {{retries?: boolean, takes_s?: number}} [options] takes_s: the duration, where it is known
   * @returns {() => Promise<void>} runs the suite and notes its result, or notes the name of the suite when too little
   *   time is left
   */
  suite(name, run, { retries = this.#retries, takes_s = 0 } = {}) {
    return async () => {
      if (!this.hasTimeFor(takes_s)) return this.skip(name);
      const result = await run();
      if (result.failed > 0 && retries) this.#failures.push({ name, run, first: result });
      else this.add(result);
    };
  }

  /** @param {Result} result final: nothing runs again */
  add(result) {
    this.#results.push(result);
  }

  /** @param {Promise<unknown>} work that `finish` waits for */
  continueInBackground(work) {
    this.#background.push(work);
  }

  /**
   * Waits for all suites, runs failed ones again, and prints flaky ones and suites that were not run.
   * @returns {Promise<{passed: number, failed: number, skipped: number}>}
   */
  async finish() {
    await Promise.all(this.#background);
    const flaky = [];
    if (this.#failures.length > 0) this.#log(`\nfailures: ${this.#failures.length}. Each runs again, alone`);
    for (const { name, run, first } of this.#failures) {
      if (performance.now() >= this.#end) {
        this.#log(`  FAILED ${name}: not run again, the time limit is over`);
        this.add(first);
        continue;
      }
      const second = await run();
      this.add(second.failed > 0 ? first : second);
      if (second.failed === 0) flaky.push({ name, first, second });
    }
    this.#printNotRun();
    for (const { name, first, second } of flaky) this.#printFlaky(name, first, second);
    return this.#totals();
  }

  #printFlaky(name, first, second) {
    this.#log(`\nFLAKY ${name}`);
    this.#log(`-- failed first:\n${first.output?.trim() ?? ''}`);
    this.#log(`-- passed when run again, alone:\n${second.output?.trim() ?? ''}`);
  }

  #printNotRun() {
    if (this.#notRun.length === 0) return;
    this.#log(`\nnot run, since too little time was left: ${this.#notRun.length}`);
    for (const name of this.#notRun) this.#log(`  not run ${name}`);
  }

  #totals() {
    const sum = (key) => this.#results.reduce((total, result) => total + (result[key] ?? 0), 0);
    return { passed: sum('passed'), failed: sum('failed'), skipped: sum('skipped') };
  }
}
