import { spawnSync } from 'node:child_process';

/**
 * A Python with the given packages, or the reason why there is none. Takes the Python that ZEROFLEET_TEST_PYTHON
 * selects, else the one on the PATH, else the distribution's. The distribution's has what apt-get installs.
 */
export function pythonWith(...packages: string[]): { python: string } | { missing: string } {
  const selected = process.env.ZEROFLEET_TEST_PYTHON;
  const programs = selected ? [selected] : ['python3', '/usr/bin/python3'];
  const has = (program: string) =>
    spawnSync(program, ['-c', `import ${packages.join(', ')}`], { stdio: 'ignore' }).status === 0;
  const python = programs.find(has);
  return python ? { python } : { missing: `${programs[0]} lacks some of ${packages.join(', ')}` };
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
