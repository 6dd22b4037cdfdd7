import { spawnSync } from 'node:child_process';

/** Python for tests that compare with other programs: ZEROFLEET_TEST_PYTHON, or the one on the PATH. */
interface TestPython {
  program: string;
  /** Reason why it cannot be used; null when it has all packages. */
  missing: string | null;
}

export function testPython(...packages: string[]): TestPython {
  const program = process.env.ZEROFLEET_TEST_PYTHON ?? 'python3';
  const { status } = spawnSync(program, ['-c', `import ${packages.join(', ')}`], { stdio: 'ignore' });
  return { program, missing: status === 0 ? null : `${program} has not all of ${packages.join(', ')}` };
}
