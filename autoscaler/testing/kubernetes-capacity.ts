/** Capacity on the stand-in of a cluster, with a clock that a test moves. */
import type { Test } from 'tap';
import { type PoolPolicy, poolPolicies } from '../../platform/config/autoscale-pools.js';
import { createLogger } from '../../platform/logging/logging.js';
import { until } from '../../platform/testing/waiting.js';
import { KubernetesCapacity } from '../kubernetes/kubernetes-capacity.js';
import { nameOf } from '../kubernetes/names.js';
import { KubernetesStandIn } from './kubernetes-stand-in.js';
import { NOW } from './world.js';

export const log = createLogger({ level: 'silent', name: 'test' });
export const kubernetes = { image: 'worker:1', resources: { cpu: '1' } };
export const policy = poolOf('default');
export const other = poolOf('other');

export function poolOf(pool: string): PoolPolicy {
  const types = [
    { name: 'small', slots: 1, max: 100, kubernetes },
    { name: 'large', slots: 8, max: 2, kubernetes },
  ];
  const [policy] = poolPolicies(JSON.stringify([{ pool, types }]));
  if (!policy) throw new Error('no pool');
  return policy;
}

export const podName = (number: number, type = 'small', pool = 'default') => nameOf({ pool, type, number });

export function open(t: Test) {
  let now = NOW;
  const cluster = new KubernetesStandIn(() => now);
  const ended: string[] = [];
  const create = () => {
    const onEnded = (pool: string, type: string, cause: string) => ended.push(`${pool}/${type} ${cause}`);
    const capacity = new KubernetesCapacity({ api: cluster, log, onEnded, clock: () => now });
    t.teardown(() => capacity.close());
    return capacity;
  };
  const view = async (capacity: KubernetesCapacity, pool = policy) => {
    await capacity.refresh();
    return capacity.view(pool);
  };
  /** The first view for which a condition holds: changes arrive by a watch. */
  const viewWhen = async (
    capacity: KubernetesCapacity,
    is: (seen: Awaited<ReturnType<typeof view>>) => boolean,
  ) => {
    await until(async () => is(await view(capacity)));
    return view(capacity);
  };
  const creations = () => cluster.calls.filter((call) => call.startsWith('create')).length;
  const pass = (ms: number) => {
    now += ms;
  };
  return { cluster, ended, create, pass, view, viewWhen, creations, capacity: create() };
}
