import type { Test } from 'tap';
import { descendants } from './processes.js';
import { startStack, type TestStack } from './stack.js';

/** A stack that starts agents on demand, at most `max`, each with a number of slots, and stops idle ones soon. */
export function startAutoscaledStack(t: Test, type: { slots: number; max: number }): Promise<TestStack> {
  const pools = [{ pool: 'default', types: [{ name: 'local', ...type }], idle_seconds: 2 }];
  return startStack(t, {
    args: ['--autoscale'],
    env: {
      ZEROFLEET_AUTOSCALE_POOLS: JSON.stringify(pools),
      ZEROFLEET_AUTOSCALE_INTERVAL_SECONDS: '1',
      ZEROFLEET_THREADS_PER_RANK: '1',
    },
  });
}

/** Process ids of a program of the stack. @param program its path in dist/ */
export const programsOf = ({ pid }: TestStack, program: string): number[] =>
  descendants(pid).flatMap((found) => (found.command.includes(`dist/${program}`) ? [found.pid] : []));
