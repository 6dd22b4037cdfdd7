import t from 'tap';
import { poolPolicies } from './autoscale-pools.js';
import { DEFAULT_SLURM_OPTIONS } from './slurm-options.js';

const parse = (slurm: object) =>
  poolPolicies(JSON.stringify([{ pool: 'gpu', types: [{ name: 'a100', slots: 4, max: 2, slurm }] }]));

t.test('options have the defaults of a type without any', async (t) => {
  t.same(parse({})[0]?.types[0]?.slurm, DEFAULT_SLURM_OPTIONS);
  t.match(parse({ gres: 'gpu:4', constraint: 'a100&ib' })[0]?.types[0]?.slurm, { gres: 'gpu:4' });
});

t.test('options that sbatch or the autoscaler could not use are refused', async (t) => {
  for (const [slurm, message] of [
    [{ partition: '--wrap=x' }, /\/slurm\/partition must match pattern/],
    [{ account: 'a b' }, /\/slurm\/account must match pattern/],
    [{ time: 3 }, /\/slurm\/time is unknown/],
    [{ time_minutes: 0 }, /\/slurm\/time_minutes/],
    [{ arguments: ['-p main'] }, /\/slurm\/arguments\/0/],
    [{ arguments: ['--comment=a\nb'] }, /\/slurm\/arguments\/0/],
    [{ arguments: ['--job-name=x'] }, /the type "a100": the autoscaler itself sets --job-name of sbatch/],
    [{ arguments: ['--depend=x'] }, /itself sets --depend of sbatch/],
    [{ setup: ['a\nb'] }, /\/slurm\/setup\/0/],
    [{ log_dir: 'logs' }, /\/slurm\/log_dir/],
    [{ time_min_minutes: 5 }, /time_min_minutes needs a time_minutes that is not shorter/],
    [{ time_minutes: 4, time_min_minutes: 5 }, /time_min_minutes needs/],
    [{ time_minutes: 2 }, /drain_seconds must be less than the time limit, 2 minutes/],
    [{ time_minutes: 60, time_min_minutes: 2 }, /drain_seconds must be less/],
  ] as const)
    t.throws(() => parse(slurm), message);
  t.doesNotThrow(() => parse({ time_minutes: 2, drain_seconds: 60, arguments: ['--exclusive'] }));
});
