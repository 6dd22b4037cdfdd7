import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../platform/process/root.js';

/**
 * Runs a script of this folder with options. Returns the JSON of its last line. `python` must have its packages;
 * rejects with the end of its output if it fails.
 */
export async function runPython<Result>(
  python: string,
  script: string,
  options: Record<string, string | number | undefined>,
  ...switches: string[]
): Promise<Result> {
  const path = join(projectRoot(), 'bench', 'peers', script);
  const args = Object.entries(options).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, String(value)],
  );
  const { stdout } = await promisify(execFile)(python, [path, ...args, ...switches], { maxBuffer: 1 << 26 });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Result;
}
