import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { capture } from '../bootstrap/command.mjs';
import { SetupError } from '../bootstrap/errors.mjs';
import { inRoot } from '../bootstrap/paths.mjs';

const PERIOD_US = 100_000;
const SUM = /^\d+ passed, \d+ failed.*$/gm;
/** What has failed, without the counts, times and remarks of its line. */
const FAILURE = /^ {2}FAILED (.*?)(?:: \d+ cases|: not run again.*)?(?: [\d.]+ s(?: \(.*\))?)?$/gm;
const FLAKY = /^FLAKY (.*)$/gm;
const NOT_RUN = /^ {2}not run (.*)$/gm;

const names = (output, pattern) => [...new Set(Array.from(output.matchAll(pattern), ([, name]) => name))];

/**
 * The results in the output of a test command.
 * @param {string} output
 * @returns {{sums: string[], failed: string[], flaky: string[], not_run: string[]}} lines with totals, and names: of
 *   what failed, of what failed once and then passed, and of what was not run
 */
export function readResults(output) {
  const flaky = names(output, FLAKY);
  // A crash is reported by a sentence that ends with the name.
  const isFlaky = (name) => flaky.some((test) => name === test || name.endsWith(` ${test}`));
  const failed = names(output, FAILURE).filter((name) => !isFlaky(name));
  return { sums: output.match(SUM) ?? [], failed, flaky, not_run: names(output, NOT_RUN) };
}

/** Starts busy processes. @returns {() => void} stops them */
export function busyProcesses(count) {
  const children = Array.from({ length: count }, () => spawn(process.execPath, ['-e', 'for (;;);']));
  return () => {
    for (const child of children) child.kill('SIGKILL');
  };
}

/**
 * Puts this process and all processes that it starts from now on into a control group with limited CPU time.
 * @param {number} processors may be a fraction
 * @returns {() => void} removes the limit
 * @throws SetupError without a writable CPU control group
 */
export function limitProcessor(processors) {
  const quotaUs = Math.round(processors * PERIOD_US);
  const isV1 = existsSync('/sys/fs/cgroup/cpu');
  const parent = isV1 ? '/sys/fs/cgroup/cpu' : '/sys/fs/cgroup';
  const group = `${parent}/zerofleet-${process.pid}`;
  try {
    mkdirSync(group);
    if (isV1) {
      writeFileSync(`${group}/cpu.cfs_period_us`, String(PERIOD_US));
      writeFileSync(`${group}/cpu.cfs_quota_us`, String(quotaUs));
    } else writeFileSync(`${group}/cpu.max`, `${quotaUs} ${PERIOD_US}`);
    writeFileSync(`${group}/cgroup.procs`, String(process.pid));
  } catch (error) {
    throw new SetupError(
      `--processor needs root and control groups that can be written to: ${error.message}`,
    );
  }
  return () => {
    for (const pid of readFileSync(`${group}/cgroup.procs`, 'utf8').split('\n').filter(Boolean))
      writeFileSync(`${parent}/cgroup.procs`, pid);
    rmdirSync(group);
  };
}

/**
 * Runs a command repeatedly, and prints a JSON line per run.
 * @param {string[]} command
 * @param {{runs: number, busy: number, processor: number}} conditions
 * @returns {Promise<number>} number of failed runs
 */
export async function repeat(command, { runs, ...conditions }) {
  const folder = inRoot('.build', 'repeat');
  mkdirSync(folder, { recursive: true });
  let failed = 0;
  for (let run = 1; run <= runs; run++) {
    const started = new Date();
    const { code, output } = await capture(command);
    const log = `${started.toISOString().replaceAll(':', '-')}.log`;
    writeFileSync(`${folder}/${log}`, output);
    if (code !== 0) failed += 1;
    const seconds = Math.round((Date.now() - started.getTime()) / 1000);
    console.log(JSON.stringify({ run, runs, ...conditions, code, seconds, ...readResults(output), log }));
  }
  return failed;
}
