import { readFileSync } from 'node:fs';
import type { InstructionSet } from '../../contracts/index.js';

/** CPU flags in /proc/cpuinfo that each instruction set requires, best first. */
const NEEDED: readonly [InstructionSet, readonly string[]][] = [
  ['avx512bf16', ['avx2', 'fma', 'f16c', 'avx512f', 'avx512bw', 'avx512dq', 'avx512vl', 'avx512_bf16']],
  ['avx512', ['avx2', 'fma', 'f16c', 'avx512f', 'avx512bw', 'avx512dq', 'avx512vl']],
  ['avx2', ['avx2', 'fma', 'f16c']],
];

/**
 * Returns the best instruction set of this machine, with the same choice as the native core; `generic` if
 * unknown. This folder may not load the native core.
 */
export function bestInstructionSet(cpuInfo = readCpuInfo()): InstructionSet {
  const flags = new Set(/^flags\s*:(.*)$/m.exec(cpuInfo)?.[1]?.split(' '));
  return NEEDED.find(([, needed]) => needed.every((flag) => flags.has(flag)))?.[0] ?? 'generic';
}

function readCpuInfo(): string {
  try {
    return readFileSync('/proc/cpuinfo', 'utf8');
  } catch {
    return '';
  }
}
