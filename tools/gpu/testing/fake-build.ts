/** A build folder with stand-in programs for tools/gpu/check.py, and calls of it. */
import { execFile, spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { projectRoot } from '../../../platform/process/root.js';

export const root = projectRoot();
export const script = (name: string) => join(root, 'tools', 'gpu', name);
const hasPython = spawnSync('python3', ['--version']).status === 0;
export const skip = hasPython ? false : 'python3 is not installed';

interface Measurement {
  part: string;
  op?: string;
  predicted_microseconds?: number;
}
interface Step {
  name: string;
  status: string;
  why?: string;
  cases?: { passed: number };
  failed_cases?: string[];
  measurements?: Measurement[];
}
interface Result {
  commit: string;
  device: string;
  stages: Record<string, Step[]>;
}

const SUMMARY = '[doctest] test cases:  3 |  2 passed | 1 failed | 4 skipped';
const FAILED_CASE = `${'='.repeat(79)}\na_test.cc:1:\nTEST CASE:  sums are exact\na_test.cc:2: ERROR: CHECK( 1 == 2 )\n${'='.repeat(79)}`;

/** Programs in a build folder. `bench` is Python after the imports; its arguments are in `args`. */
export async function buildFolder(t: Test, bench: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'zf-gpu-check-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const tests = `import sys\nprint(${JSON.stringify(FAILED_CASE)})\nprint(${JSON.stringify(SUMMARY)})\nsys.exit(1)\n`;
  const benchmark = `import json, os, subprocess, sys, time\nargs = sys.argv[1:]\n${bench}\n`;
  const programs = {
    zerofleet_tests: tests,
    zerofleet_emulated_tests: tests,
    zerofleet_gpu_bench: benchmark,
    zerofleet_emulated_gpu_bench: benchmark,
  };
  for (const [name, source] of Object.entries(programs)) {
    await writeFile(join(folder, name), `#!/usr/bin/env python3\n${source}`);
    await chmod(join(folder, name), 0o755);
  }
  return folder;
}

export const checkArgs = (folder: string) => [
  script('check.py'),
  ...['--emulated', '--build-folder', folder, '--peer', 'none'],
];
// Without what would send results elsewhere.
const { OUT: _, ...rest } = process.env;
export const environment = rest;

export async function resultIn(folder: string) {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.json'));
  const text = await readFile(join(folder, files[0] ?? ''), 'utf8');
  return { files, result: JSON.parse(text) as Result };
}

export async function check(folder: string, ...options: string[]) {
  const done = await promisify(execFile)('python3', [...checkArgs(folder), ...options], {
    env: environment,
  }).then(
    ({ stdout }) => ({ code: 0, stdout }),
    (error: { code: number; stdout: string }) => error,
  );
  return { ...done, ...(await resultIn(folder)) };
}

/** Lines of a benchmark's `exact` part, as a program of buildFolder(). */
export const DIGESTS = `print(json.dumps({"part": "digests", "family": "gpt2", "digests": ["ab", "cd"], "equal": True}))`;
