import t from 'tap';
import { open, policy } from '../testing/slurm-capacity.js';

t.test('launches that fail are tried again after a growing pause', async (t) => {
  const { slurm, ended, capacity, next, pass } = open();
  slurm.refuses = 'Invalid account or account/partition combination specified';
  await t.rejects(capacity.want(policy, 'small', 2), /Invalid account/);
  t.match(await next(capacity), {
    machines: [],
    wanted: { small: 2 },
    problems: [{ type: 'small', code: 'permission', message: /^sbatch failed: Invalid account/ }],
  });
  slurm.refuses = null;
  await capacity.want(policy, 'small', 2);
  t.equal(slurm.submissions.length, 0, 'paused');
  t.match(await next(capacity, 10_000), { wanted: { small: 2 } });
  t.equal(slurm.submissions.length, 2, 'the capacity itself tries again');

  slurm.start([1, 2]);
  pass(1_000);
  slurm.end(1, 'FAILED', 'NonZeroExitCode');
  slurm.end(2, 'FAILED', 'NonZeroExitCode');
  t.match(await next(capacity, 1_000), {
    wanted: { small: 2 },
    problems: [{ type: 'small', code: 'configuration', message: /the agent of slurm-2 ended at its start/ }],
  });
  t.same(ended, ['default/small failed', 'default/small failed']);
  await next(capacity, 10_000);
  t.equal(slurm.submissions.length, 2, 'the second pause is longer');
  await next(capacity, 10_000);
  t.equal(slurm.submissions.length, 4);
  slurm.start([3, 4]);
  await next(capacity, 60_000);
  slurm.end(3, 'FAILED', 'NonZeroExitCode');
  const later = await next(capacity);
  t.equal(later.wanted.small, 1, 'it ran for a while, so this is no failed launch');
  t.same(later.problems, []);

  slurm.change(4, { states: ['CANCELLED'] });
  await capacity.want(policy, 'small', 0);
  await capacity.want(policy, 'large', 1);
  slurm.change(5, { reason: 'BadConstraints' });
  t.match(await next(capacity), {
    machines: [],
    wanted: { large: 1 },
    problems: [
      { type: 'large', code: 'configuration', message: 'Slurm never starts slurm-5: BadConstraints' },
    ],
  });
  t.same(slurm.cancelled, [5], 'what can never start does not stay in the queue');
  t.equal(ended.at(-1), 'default/large refused');
  await capacity.want(policy, 'large', 0);
  t.match(await next(capacity, 100_000), { wanted: { large: 0 } });
  t.equal(slurm.submissions.length, 5);
});

t.test('an allocation that has run for long does not hide that others fail', async (t) => {
  const { slurm, capacity, next } = open();
  await capacity.want(policy, 'small', 2);
  slurm.start([1, 2]);
  slurm.end(2, 'FAILED', 'NonZeroExitCode');
  for (let seconds = 0; seconds < 120; seconds += 5) {
    const { problems } = await next(capacity);
    t.match(problems, [{ type: 'small', code: 'configuration' }]);
    const last = [...slurm.queue.keys()].at(-1) ?? 0;
    if (last > 1) slurm.start([last]);
    if (last > 1) slurm.end(last, 'FAILED', 'NonZeroExitCode');
  }
  t.ok(slurm.submissions.length <= 6, `${slurm.submissions.length} in two minutes`);
});
