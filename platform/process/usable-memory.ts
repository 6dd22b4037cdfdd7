import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';

/** Returns the memory in bytes that processes here can still take, within the limit of their control group. */
export function usableMemory(): number {
  return Math.min(systemMemory(), process.availableMemory?.() ?? Number.POSITIVE_INFINITY);
}

/** Memory that the system can give without swapping: free, or caches. */
function systemMemory(): number {
  try {
    const [, kib] = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8')) ?? [];
    if (kib !== undefined) return Number(kib) * 1024;
  } catch {
    // Not Linux.
  }
  return totalmem();
}

/** Returns the memory of this machine in bytes, or the limit of its control group if that is smaller. */
export function totalMemory(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
