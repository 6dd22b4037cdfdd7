import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';

/** Writes a program that takes the place of Python, beside other files. Returns its path. */
export function pythonProgram(
  t: Test,
  lines: readonly string[],
  files: Parameters<Test['testdir']>[0] = {},
): string {
  const program = join(t.testdir(files), 'python');
  writeFileSync(program, `#!/usr/bin/env python3\n${lines.join('\n')}\n`, { mode: 0o755 });
  return program;
}
