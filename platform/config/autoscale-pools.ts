/** Parser of `ZEROFLEET_AUTOSCALE_POOLS`: the pools of an autoscaler and the machine types of each. */

import { Check, type Static, Type } from '../schema.js';
import { poolName } from './config-values.js';
import { KubernetesOptions, kubernetesProblem } from './kubernetes-options.js';
import { SlurmOptions, slurmProblem } from './slurm-options.js';

/** Machines of one type, all with the same number of slots. */
const MachineType = Type.Object(
  {
    name: Type.String({ pattern: '^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$' }),
    /** Ranks that a machine runs at once. */
    slots: Type.Integer({ minimum: 1, maximum: 1024 }),
    /** Maximum of machines. */
    max: Type.Integer({ minimum: 1, maximum: 100_000 }),
    /** Price of a machine, in the currency of budgets. */
    price_per_hour: Type.Number({ minimum: 0, default: 0 }),
    /** Auto Scaling group of the machines; by default the type's name. */
    group: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    /** Slurm's allocation for one machine; by default that of the account's default partition. */
    slurm: Type.Optional(SlurmOptions),
    /** Pod for one machine on Kubernetes. */
    kubernetes: Type.Optional(KubernetesOptions),
  },
  { additionalProperties: false },
);

const Pool = Type.Object(
  {
    pool: Type.String(),
    types: Type.Array(MachineType, { minItems: 1, maxItems: 20 }),
    /** Minimum of ranks kept without demand. */
    min_ranks: Type.Integer({ minimum: 0, default: 0 }),
    /** Maximum of ranks; by default the sum over the types. */
    max_ranks: Type.Optional(Type.Integer({ minimum: 1 })),
    /**
     * Idle time after which a machine is ended. The default is about the time to launch it again, which costs
     * as much.
     */
    idle_seconds: Type.Number({ minimum: 0, default: 120 }),
    /**
     * Training time that a job loses when it moves to other machines, the price of a move; null: jobs never
     * move.
     */
    move_seconds: Type.Union([Type.Number({ minimum: 0 }), Type.Null()], { default: 120 }),
    /**
     * Time for an agent to register before the machine gets a strike; it is replaced at the second strike.
     */
    boot_grace_seconds: Type.Number({ exclusiveMinimum: 0, default: 300 }),
    /** Time for requested machines to appear before another type is tried. */
    launch_timeout_seconds: Type.Number({ exclusiveMinimum: 0, default: 180 }),
    /**
     * Time that a job which needs several machines keeps those that have come, after the last one. It then gives them
     * up, and tries again after twice that time.
     */
    gang_seconds: Type.Number({ exclusiveMinimum: 0, default: 900 }),
    /** Maximum cost of machines in a day (UTC). */
    budget_per_day: Type.Optional(Type.Number({ minimum: 0 })),
    /**
     * When the budget of the day is spent: machines are ended and their jobs continue from a checkpoint the next day,
     * or running jobs finish.
     */
    on_budget: Type.Union([Type.Literal('pause'), Type.Literal('finish')], { default: 'pause' }),
  },
  { additionalProperties: false },
);

const Pools = Type.Array(Pool, { minItems: 1, maxItems: 100 });

const policies = new Check(Pools, { defaults: true });

export type MachineType = Static<typeof MachineType>;
export type PoolPolicy = Static<typeof Pool>;

const EXAMPLE = '[{"pool": "default", "types": [{"name": "g5", "slots": 1, "max": 8}]}]';

/** Parses the policies and applies defaults. Throws an Error that states the required form. */
export function poolPolicies(text: string): readonly PoolPolicy[] {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (error) {
    throw new Error(`must be JSON such as ${EXAMPLE} (${(error as Error).message})`);
  }
  if (!policies.fits(given)) throw new Error(`${policies.problems()[0]}; an example is ${EXAMPLE}`);
  for (const { pool } of given) poolName(pool);
  noneTwice(
    given.map(({ pool }) => pool),
    'pool',
  );
  for (const { types } of given)
    noneTwice(
      types.map(({ name }) => name),
      'type of one pool',
    );
  for (const { slurm, kubernetes, name } of given.flatMap(({ types }) => types)) {
    const problem = (slurm && slurmProblem(slurm)) ?? (kubernetes && kubernetesProblem(kubernetes));
    if (problem) throw new Error(`the type ${JSON.stringify(name)}: ${problem}`);
  }
  return given;
}

function noneTwice(names: readonly string[], noun: string): void {
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`names the ${noun} ${JSON.stringify(twice)} twice`);
}
