import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { capture } from '../bootstrap/command.mjs';
import { SetupError } from '../bootstrap/errors.mjs';
import { inRoot } from '../bootstrap/paths.mjs';

const PERIOD_US = 100_000;
const SUM = /^\d+ passed, \d+ failed.*$/gm;
const FAILURE = /^ {2}FAILED .*$/gm;

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
  const quota_us = Math.round(processors * PERIOD_US);
  const isV1 = existsSync('/sys/fs/cgroup/cpu');
  const parent = isV1 ? '/sys/fs/cgroup/cpu' : '/sys/fs/cgroup';
  const group = `${parent}/zerofleet-${process.pid}`;
  try {
    mkdirSync(group);
    if (isV1) {
      writeFileSync(`${group}/cpu.cfs_period_us`, String(PERIOD_US));
      writeFileSync(`${group}/cpu.cfs_quota_us`, String(quota_us));
    } else writeFileSync(`${group}/cpu.max`, `${quota_us} ${PERIOD_US}`);
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
    const failures = output.match(FAILURE) ?? [];
    const sums = output.match(SUM) ?? [];
    console.log(JSON.stringify({ run, runs, ...conditions, code, seconds, sums, failures, log }));
  }
  return failed;
}
