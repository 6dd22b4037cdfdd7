/** Reader of `ZEROFLEET_AUTOSCALE_POOLS`: which pools an autoscaler looks after, and what machines each may have. */

import { Check, type Static, Type } from '../schema.js';
import { poolName } from './config-values.js';

/** Machines of one kind: all of them have the same number of slots. */
const MachineType = Type.Object(
  {
    name: Type.String({ pattern: '^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$' }),
    /** Ranks that a machine runs at once. */
    slots: Type.Integer({ minimum: 1, maximum: 1024 }),
    /** Machines that there may be at once. */
    max: Type.Integer({ minimum: 1, maximum: 100_000 }),
    /** Of a machine, in whatever currency budgets have. */
    price_per_hour: Type.Number({ minimum: 0, default: 0 }),
    /** The Auto Scaling group that has them; by default one of the type's name. */
    group: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
  },
  { additionalProperties: false },
);

const Pool = Type.Object(
  {
    pool: Type.String(),
    types: Type.Array(MachineType, { minItems: 1, maxItems: 20 }),
    /** Ranks that there are machines for even if nobody wants any. */
    min_ranks: Type.Integer({ minimum: 0, default: 0 }),
    /** Ranks that there may be machines for at once; what the types add up to when absent. */
    max_ranks: Type.Optional(Type.Integer({ minimum: 1 })),
    /** How long a machine may do nothing before it goes: by default about what it takes to have it again, which costs as much. */
    idle_seconds: Type.Number({ minimum: 0, default: 120 }),
    /** How long a machine may take until its agent is known, before that counts as a strike; with two it is replaced. */
    boot_grace_seconds: Type.Number({ exclusiveMinimum: 0, default: 300 }),
    /** How long machines that were asked for may fail to appear before another type is tried. */
    launch_timeout_seconds: Type.Number({ exclusiveMinimum: 0, default: 180 }),
    /** What machines may cost in a day (UTC). */
    budget_per_day: Type.Optional(Type.Number({ minimum: 0 })),
  },
  { additionalProperties: false },
);

const Pools = Type.Array(Pool, { minItems: 1, maxItems: 100 });

const policies = new Check(Pools, { defaults: true });

export type MachineType = Static<typeof MachineType>;
export type PoolPolicy = Static<typeof Pool>;

const EXAMPLE = '[{"pool": "default", "types": [{"name": "g5", "slots": 1, "max": 8}]}]';

/** Fills in the defaults. Throws an Error that says what it must be. */
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
  return given;
}

function noneTwice(names: readonly string[], what: string): void {
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`names the ${what} ${JSON.stringify(twice)} twice`);
}
