import t from 'tap';
import { poolPolicies } from './autoscale-pools.js';

const type = { name: 'g5', slots: 1, max: 8 };

t.test('defaults are applied', async (t) => {
  t.same(poolPolicies(JSON.stringify([{ pool: 'gpu', types: [type] }])), [
    {
      pool: 'gpu',
      types: [{ ...type, price_per_hour: 0 }],
      min_ranks: 0,
      idle_seconds: 120,
      move_seconds: 120,
      boot_grace_seconds: 300,
      launch_timeout_seconds: 180,
      gang_seconds: 900,
      on_budget: 'pause',
    },
  ]);
});

t.test('invalid policies are refused with the required form', async (t) => {
  const pool = { pool: 'gpu', types: [type] };
  for (const [given, message] of [
    ['{', /must be JSON such as \[{"pool"/],
    [[], /\/ must NOT have fewer than 1 items/],
    [[{ ...pool, idle: 3 }], /\/0\/idle is unknown/],
    [[{ ...pool, idle_seconds: -1 }], /\/0\/idle_seconds/],
    [[{ pool: 'gpu', types: [{ ...type, slots: 1.5 }] }], /\/0\/types\/0\/slots/],
    [[{ pool: 'Not A Pool', types: [type] }], /lower-case letters/],
    [[pool, pool], /names the pool "gpu" twice/],
    [[{ pool: 'gpu', types: [type, type] }], /names the type of one pool "g5" twice/],
  ] as const) {
    t.throws(() => poolPolicies(typeof given === 'string' ? given : JSON.stringify(given)), message);
  }
  const other = { pool: 'other', types: [type] };
  t.equal(poolPolicies(JSON.stringify([pool, other])).length, 2);
});
