/** Detection of out-of-memory kills: Linux counts them per cgroup and per machine. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Counters of out-of-memory kills; null if unavailable. */
interface OomKills {
  /** Counter of the cgroup of this process and its children. */
  own_group: number | null;
  machine: number | null;
}

/** Reads the counters. @param root mount point of the kernel's file systems; `/` except in tests */
export function readOomKills(root = '/'): OomKills {
  const machine = counter(join(root, 'proc/vmstat'));
  const groups = readText(join(root, 'proc/self/cgroup')) ?? '';
  for (const line of groups.split('\n')) {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    const files = counterFiles(controllers, path);
    for (const file of files) {
      const ownGroup = counter(join(root, 'sys/fs/cgroup', file));
      if (ownGroup !== null) return { own_group: ownGroup, machine };
    }
  }
  return { own_group: null, machine };
}

/**
 * Returns evidence that a process killed by SIGKILL between two readings ran out of memory; null without any. The
 * kernel does not tell the parent of a process, so this is no proof.
 */
export function oomEvidence(before: OomKills, after: OomKills): string | null {
  if (grew(before.own_group, after.own_group)) {
    return "almost certain: the kernel has just counted an out-of-memory kill in this worker's control group";
  }
  // A cgroup counter without a kill outweighs the machine's: the kill was in another cgroup.
  if (after.own_group === null && grew(before.machine, after.machine)) {
    return 'likely: the kernel has just counted an out-of-memory kill on this machine';
  }
  return null;
}

function grew(before: number | null, after: number | null): boolean {
  return before !== null && after !== null && after > before;
}

/**
 * Returns the counter files of a cgroup. Version 2 has one tree, version 1 one per controller. A container sees its own
 * cgroup as the root.
 */
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
