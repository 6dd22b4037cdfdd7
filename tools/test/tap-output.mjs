// Parses the output of file-group.mjs.
import { sourceOf } from './compiled.mjs';

const TOTALS = /^# \{ total: \d+(?:, pass: (\d+))?(?:, fail: (\d+))?(?:, skip: (\d+))?(?:, todo: \d+)? \}/;
const FILE_RESULT = /^(?:ok|not ok) \d+ - (\S+\.test\.m?js)/;
const TIMES = /^# times (\{.*\})$/;
const SKIPPED = /^\s+ok \d+ - (.*) # SKIP ?(.*)$/i;

/**
 * Parses the lines of one process. `report` is called with the result of each file as soon as it is known.
 * @param {(result: {file: string, ok: boolean, output: string[], skipped: string[], times: object}) => void} report
 */
export class TapReader {
  /** Assertions; null until the process has printed its summary, which a crashed process never does. */
  totals = null;
  #report;
  #block = [];
  #skipped = [];
  #result = null;

  constructor(report) {
    this.#report = report;
  }

  take(line) {
    const totals = TOTALS.exec(line);
    if (totals) {
      const [passed, failed, skipped] = totals.slice(1).map((value) => Number(value ?? 0));
      this.totals = { passed, failed, skipped };
    }
    const result = FILE_RESULT.exec(line);
    if (result) this.#result = { file: sourceOf(result[1]) };
    const times = TIMES.exec(line);
    if (times) {
      // A file that runs itself again in a process has a result of that process beside its own.
      const ok = !this.#block.some((text) => text.startsWith('not ok'));
      this.#report({
        ...this.#result,
        ok,
        output: this.#block,
        skipped: this.#skipped,
        times: JSON.parse(times[1]),
      });
      this.#block = [];
      this.#skipped = [];
      return;
    }
    const skip = SKIPPED.exec(line);
    if (skip) this.#skipped.push(`${skip[1].split(' # ')[0]}: ${skip[2]}`);
    this.#block.push(line);
  }

  /** Lines printed since the last finished file. */
  get rest() {
    return this.#block;
  }
}
