/** Finds processes by a mark in their environment, which every descendant inherits, even when it is orphaned. */
import { readdirSync, readFileSync } from 'node:fs';

export const MARK = 'ZF_TEST_FLEET';

export interface MarkedProcess {
  pid: number;
  command: string;
}

/** Live processes with this mark, without zombies. */
export function markedProcesses(mark: string): MarkedProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readMarked(Number(name), mark))
    .filter((found) => found !== null);
}

function readMarked(pid: number, mark: string): MarkedProcess | null {
  try {
    if (!readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`${MARK}=${mark}`)) return null;
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    if (stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z')) return null;
    return { pid, command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() };
  } catch {
    // It belongs to another user, or it exited meanwhile.
    return null;
  }
}
