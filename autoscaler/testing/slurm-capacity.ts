/** The Slurm capacity over a stand-in of Slurm's commands, with a clock that a test moves. */
import { type PoolPolicy, poolPolicies } from '../../platform/config/autoscale-pools.js';
import { createLogger } from '../../platform/logging/logging.js';
import { SlurmCapacity } from '../slurm/slurm-capacity.js';
import { SlurmStandIn } from './slurm-stand-in.js';
import { NOW } from './world.js';

export const log = createLogger({ level: 'silent', name: 'test' });
export const TYPES = [
  { name: 'small', slots: 1, max: 100, slurm: { drain_seconds: 60 } },
  { name: 'large', slots: 8, max: 2 },
];
export const policy = poolOf('default');
export const other = poolOf('other');

export function poolOf(pool: string): PoolPolicy {
  const [policy] = poolPolicies(JSON.stringify([{ pool, types: TYPES }]));
  if (!policy) throw new Error('no pool');
  return policy;
}

export function open() {
  let now = NOW;
  const slurm = new SlurmStandIn(() => now);
  const ended: string[] = [];
  const create = (installation = 'here') =>
    new SlurmCapacity({
      commands: slurm,
      installation,
      agent: { command: ['agent'], env: {}, log_dir: '/logs' },
      log,
      onEnded: (pool, type, cause) => ended.push(`${pool}/${type} ${cause}`),
      clock: () => now,
    });
  const pass = (ms: number) => {
    now += ms;
  };
  /** The controller's view at its next reconciliation. */
  const next = async (capacity: SlurmCapacity, ms = 5_000) => {
    pass(ms);
    await capacity.refresh([policy, other]);
    return capacity.view(policy);
  };
  return { slurm, ended, create, pass, next, capacity: create() };
}

export const machine = (id: string, terminating = false) => ({ id, type: 'small', terminating });
