import { isGpuFault } from '../gpus/gpu-faults.js';
import type { RankEnd } from './rank.js';

/** How a rank ended, as its log says it. */
export function endText(end: RankEnd): string {
  const after = end.step === null ? '' : ` after step ${end.step}`;
  switch (end.kind) {
    case 'failed':
      return `failed${after}: ${end.error.code}: ${end.error.message}`;
    case 'exited':
      return `exited with code ${end.code}${after}`;
    case 'signalled':
      return `ended by ${end.signal}${after}`;
    case 'out_of_memory':
      return `ended by ${end.signal}${after} because memory ran out (${end.evidence})`;
    case 'silent':
      return `killed${after}: it said nothing for ${end.silent_ms} ms`;
    case 'stuck':
      return `killed${after}: ${end.waiting} other ranks waited for it in vain`;
    case 'not_started':
      return `not started: ${end.message}`;
    case 'node_lost':
      return `lost${after} with its worker: ${end.message}`;
    case 'killed':
      return `killed by its worker${after}`;
  }
}

/** What a rank's end says against its GPU; null: nothing. */
export function gpuFaultOf(end: RankEnd): string | null {
  if (end.kind !== 'failed' || !isGpuFault(end.error.code)) return null;
  return `${end.error.code}: ${end.error.message}`;
}
