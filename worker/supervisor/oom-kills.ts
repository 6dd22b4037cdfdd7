/** Whether the kernel ended a process because memory ran out: Linux counts these per control group and per machine. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Processes that the kernel has ended so far because memory ran out; null where it does not say. */
export interface OomKills {
  /** In the control group of this process, where its children are, too. */
  own_group: number | null;
  machine: number | null;
}

/** @param root where the kernel's file systems are mounted; `/` but in tests */
export function readOomKills(root = '/'): OomKills {
  const machine = counter(join(root, 'proc/vmstat'));
  const groups = readText(join(root, 'proc/self/cgroup')) ?? '';
  for (const line of groups.split('\n')) {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    const files = counterFiles(controllers, path);
    for (const file of files) {
      const own_group = counter(join(root, 'sys/fs/cgroup', file));
      if (own_group !== null) return { own_group, machine };
    }
  }
  return { own_group: null, machine };
}

/**
 * What the counters say about a process that was ended by SIGKILL between two readings; null: nothing. The kernel does
 * not tell a process's parent, so this is evidence and no proof.
 */
export function oomEvidence(before: OomKills, after: OomKills): string | null {
  if (grew(before.own_group, after.own_group)) {
    return "almost certain: the kernel has just counted an out-of-memory kill in this worker's control group";
  }
  // A group that counts and counted nothing outweighs the machine: that kill was in another group.
  if (after.own_group === null && grew(before.machine, after.machine)) {
    return 'likely: the kernel has just counted an out-of-memory kill on this machine';
  }
  return null;
}

function grew(before: number | null, after: number | null): boolean {
  return before !== null && after !== null && after > before;
}

/** Version 2 of control groups has one tree, version 1 one for each controller. A container sees its own group as the root. */
function counterFiles(controllers: string, path: string): string[] {
  if (controllers === '') return [join(path, 'memory.events'), 'memory.events'];
  if (!controllers.split(',').includes('memory')) return [];
  return [join('memory', path, 'memory.oom_control'), join('memory', 'memory.oom_control')];
}

function counter(file: string): number | null {
  const [, digits] = /^oom_kill (\d+)$/m.exec(readText(file) ?? '') ?? [];
  return digits === undefined ? null : Number(digits);
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
