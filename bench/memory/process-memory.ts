import { readFile } from 'node:fs/promises';

/** Resident set of a process and its peak, in bytes. */
export async function memoryOf(pid: number): Promise<{ rss_bytes: number; peak_rss_bytes: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const read = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024;
  return { rss_bytes: read('VmRSS'), peak_rss_bytes: read('VmHWM') };
}

/** Proportional set of this process, in bytes: a page that several processes have counts by its share. */
export async function proportionalBytes(): Promise<number> {
  const rollup = await readFile('/proc/self/smaps_rollup', 'utf8');
  return Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1]) * 1024;
}
