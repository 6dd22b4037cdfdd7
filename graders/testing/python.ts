import { execFileSync } from 'node:child_process';
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

/** Processes of serve.py and its grades that this process has started or that have lost their parent since. */
export function pythonProcesses(): { pid: number; parent: number }[] {
  const table = execFileSync('ps', ['-e', '-o', 'pid=,ppid=,etimes=,args='], { encoding: 'utf8' });
  const found = table.split('\n').flatMap((line) => {
    const [pid, parent, seconds] = line.trim().split(/\s+/).map(Number);
    const isOurs = line.includes('graders/python/serve.py') && (seconds ?? 0) <= process.uptime() + 1;
    return isOurs && pid !== undefined && parent !== undefined ? [{ pid, parent }] : [];
  });
  const rootOf = (parent: number): number => {
    const above = found.find(({ pid }) => pid === parent);
    return above === undefined ? parent : rootOf(above.parent);
  };
  return found.filter(({ parent }) => [1, process.pid].includes(rootOf(parent)));
}
