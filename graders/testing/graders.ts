import type { Test } from 'tap';
import { AddressPolicy } from '../../platform/outgoing/addresses.js';
import type { GraderOutside, Graders } from '../grader.js';
import { createGraders } from '../graders.js';
import type { RuntimeOptions } from '../runtime.js';

type Changes = Partial<GraderOutside> & {
  python?: Partial<RuntimeOptions['python']>;
  limits?: Partial<RuntimeOptions['python']['limits']>;
  asking?: Partial<RuntimeOptions['asking']>;
};

/** Graders with small limits that can reach this machine. */
export function testGraders(t: Test, { python, limits, asking, ...outside }: Changes = {}): Graders {
  const graders = createGraders({
    project: 'default',
    outside: {
      askModel: () => Promise.reject(new Error('there are no models')),
      findWebhook: async () => null,
      ...outside,
    },
    python: {
      program: 'python3',
      processes: 2,
      ...python,
      limits: { seconds: 60, cpu_seconds: 1, memory_bytes: 512 * 1024 ** 2, ...limits },
    },
    asking: {
      policy: new AddressPolicy(['127.0.0.0/8']),
      resolve: async () => [],
      timeout_ms: 10_000,
      retry_delays_ms: [10, 20],
      ...asking,
    },
  });
  t.teardown(() => graders.close());
  return graders;
}
