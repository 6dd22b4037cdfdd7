/** The time within which tests begin. What is left over then is named and counted as skipped, so that a slow machine ends in time. */
export class TimeLimit {
  #end;

  /** @param {number} seconds from now on; without a limit when Infinity */
  constructor(seconds) {
    this.#end = performance.now() + seconds * 1000;
  }

  /**
   * @param {string} name of what the task tests
   * @param {() => Promise<T>} task
   * @returns {() => Promise<T | {passed: number, failed: number, skipped: number}>} a task that does nothing when the time is over
   * @template T
   */
  within(name, task) {
    return async () => {
      if (performance.now() < this.#end) return task();
      console.log(`  skipped ${name}: the time limit is over`);
      return { passed: 0, failed: 0, skipped: 1 };
    };
  }
}
