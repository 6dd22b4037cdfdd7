import { isGpuFault } from '../../shared/gpu-faults.js';
import type { RankEnd } from './rank.js';

/** Returns the end of a rank as a log line. */
export function endText(end: RankEnd): string {
  const after = end.step === null ? '' : ` after step ${end.step}`;
  switch (end.kind) {
    case 'failed':
      return `failed${after}: ${end.error.code}: ${end.error.message}`;
    case 'exited':
      return `exited with code ${end.code}${after}`;
    case 'signalled':
      return `killed by ${end.signal}${after}`;
    case 'out_of_memory':
      return `killed by ${end.signal}${after} because memory ran out (${end.evidence})`;
    case 'silent':
      return `killed${after}: no message for ${end.silent_ms} ms`;
    case 'stuck':
      return `killed${after}: ${end.waiting} other ranks waited for it without progress`;
    case 'not_started':
      return `not started: ${end.message}`;
    case 'node_lost':
      return `lost${after} with its worker: ${end.message}`;
    case 'killed':
      return `killed by its worker${after}`;
  }
}

/** Returns the GPU fault in a rank's end, or null. */
export function gpuFaultOf(end: RankEnd): string | null {
  if (end.kind !== 'failed' || !isGpuFault(end.error.code)) return null;
  return `${end.error.code}: ${end.error.message}`;
}
