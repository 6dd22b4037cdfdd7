import type { AddressPolicy } from '../platform/outgoing/addresses.js';
import { resolveByDns } from '../platform/outgoing/post.js';
import { usableCores } from '../platform/process/usable-cores.js';
import { GraderRuntime } from './runtime.js';

const SECOND = 1000;
const MIB = 1024 ** 2;

/** Processes and threads of the graders of all projects, with the limits of a grade. */
export function createRuntime(program: string, policy: AddressPolicy): GraderRuntime {
  return new GraderRuntime({
    python: {
      program,
      // One project can use all cores; another one begins beside it.
      processes: usableCores() + 1,
      limits: { seconds: 30, cpu_seconds: 10, memory_bytes: 1024 * MIB },
    },
    asking: {
      policy,
      resolve: resolveByDns,
      timeout_ms: 30 * SECOND,
      retry_delays_ms: [SECOND, 4 * SECOND],
    },
  });
}
