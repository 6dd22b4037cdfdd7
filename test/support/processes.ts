import { readdirSync, readFileSync } from 'node:fs';

interface ProcessInfo {
  pid: number;
  parent: number;
  command: string;
}

/** A live process from /proc; null if it has exited or is a zombie. */
function readProcess(pid: number): ProcessInfo | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name is in parentheses and may contain anything; the fields after it are plain.
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z') return null;
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return { pid, parent: Number(parent), command };
  } catch {
    return null;
  }
}

/** All living descendants of a process. */
export function descendants(root: number): ProcessInfo[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProcess(Number(name)))
    .filter((info) => info !== null);
  const found = new Set([root]);
  for (let size = 0; size !== found.size; ) {
    size = found.size;
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid);
  }
  return all.filter(({ pid }) => pid !== root && found.has(pid));
}

/** True if a process is alive. */
export const isAlive = (pid: number): boolean => readProcess(pid) !== null;

/** The rank processes below a stack. */
export function rankProcesses(stackPid: number): ProcessInfo[] {
  return descendants(stackPid).filter(({ command }) => /worker\/rank\/main\.js/.test(command));
}

/** Kills one of the rank processes below a stack. */
export function killRank(stackPid: number, index: number): void {
  const ranks = rankProcesses(stackPid);
  const rank = ranks[index];
  if (rank === undefined) throw new Error(`the stack has ${ranks.length} ranks, and no rank at ${index}`);
  process.kill(rank.pid, 'SIGKILL');
}

/** The worker agent below a stack. */
export function agentProcess(stackPid: number): ProcessInfo | undefined {
  return descendants(stackPid).find(({ command }) => /dist\/worker\/agent\/main\.js/.test(command));
}

/** Returns the ids of the task processes below a stack, among which are those of models. */
export function modelProcesses(stackPid: number): number[] {
  return descendants(stackPid)
    .filter(({ command }) => /worker\/tasks\/main\.js/.test(command))
    .map(({ pid }) => pid);
}
