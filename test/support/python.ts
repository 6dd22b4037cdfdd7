import { spawnSync } from 'node:child_process';

/** A Python with the given packages, or the reason why there is none; ZEROFLEET_TEST_PYTHON selects one that is not on the PATH. */
export function pythonWith(...packages: string[]): { python: string } | { missing: string } {
  const python = process.env.ZEROFLEET_TEST_PYTHON ?? 'python3';
  const { status } = spawnSync(python, ['-c', `import ${packages.join(', ')}`], { stdio: 'ignore' });
  return status === 0 ? { python } : { missing: `${python} lacks some of ${packages.join(', ')}` };
}

/** Runs a script that prints JSON. @throws Error with its output if it fails */
export function runPython(python: string, script: string, args: readonly string[]): unknown {
  const { status, stdout, stderr } = spawnSync(python, [script, ...args], {
    encoding: 'utf8',
    env: { ...process.env, HF_HUB_OFFLINE: '1' },
  });
  if (status !== 0) throw new Error(`${script} failed:\n${stderr}`);
  return JSON.parse(stdout);
}
