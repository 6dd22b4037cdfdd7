/** One measurement of the `memory` benchmark, a child process: `memory/probe.js PARAMS RANKS`. */
import { readFileSync } from 'node:fs';
import { endWithParent, measureZeroMemory, type ZeroMemory } from '../../native/js/index.js';

export interface MemoryProbeResult {
  /** Peak resident set of all ranks, minus the resident set before them. */
  peak_bytes: number;
  /** Memory of rank 0 by part. */
  parts: ZeroMemory;
  /** Gradient of one parameter, which backward would hold. */
  handed_in_bytes: number;
}

endWithParent();

const PARAM_NUMEL = 1 << 20;
const [params, worldSize] = process.argv.slice(2).map(Number) as [number, number];

// The addon is loaded and has run once, so that its own memory is not counted.
await measureZeroMemory({ params: 4096, param_numel: 4096, world_size: 1 });
const before = process.memoryUsage.rss();
const parts = await measureZeroMemory({ params, param_numel: PARAM_NUMEL, world_size: worldSize });
const peak = Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) * 1024;
const result: MemoryProbeResult = {
  peak_bytes: peak - before,
  parts,
  handed_in_bytes: 4 * Math.min(PARAM_NUMEL, params),
};
process.send?.(result, () => process.exit(0));
