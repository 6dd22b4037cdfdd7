/** Ranks granted to jobs. */
import t from 'tap';
import { jobOf } from '../testing/world.js';
import { type DemandLimits, demandOf } from './demand.js';
import type { JobDemand } from './types.js';

const LIMITS: DemandLimits = {
  ranks: 10,
  unbudgeted: 10,
  unpaused: 10,
  max_ranks: 20,
  quotas: {},
  paused: new Set(),
};
const demand = (jobs: JobDemand[], limits: Partial<DemandLimits> = {}) => {
  const { ranks, admitted, refused } = demandOf(jobs, { ...LIMITS, ...limits });
  return { ranks, admitted: admitted.map(({ id }) => id), refused: Object.fromEntries(refused) };
};

t.test('no jobs', async (t) => {
  t.same(demand([]), { ranks: 0, admitted: [], refused: {} });
});

t.test('orders by priority, running jobs first, then by queue position', async (t) => {
  const jobs = [
    jobOf('a'),
    jobOf('b'),
    jobOf('runs', { held: 1 }),
    jobOf('urgent', { priority: 5 }),
    jobOf('low', { priority: -1, held: 1 }),
  ];
  t.same(demand(jobs).admitted, ['urgent', 'runs', 'a', 'b', 'low']);
});

t.test('a gang that does not fit gets nothing, and the next one may', async (t) => {
  const jobs = [
    jobOf('a', { need: 6 }),
    jobOf('b', { need: 5 }),
    jobOf('c', { need: 4 }),
    jobOf('d', { need: 21 }),
    jobOf('e', { need: 1 }),
  ];
  t.same(demand(jobs), {
    ranks: 10,
    admitted: ['a', 'c'],
    refused: { b: 'capacity', d: 'too_large', e: 'capacity' },
  });
  t.same(demand([jobOf('a', { need: 20 })], { ranks: 20 }).admitted, ['a'], 'exactly as many as possible');
});

t.test('a job beyond the quota of its project is refused', async (t) => {
  const quotas = { p: 5 };
  const jobs = [
    jobOf('a', { need: 3, project: 'p' }),
    jobOf('b', { need: 3, project: 'p' }),
    jobOf('c', { need: 2, project: 'p' }),
    jobOf('d', { need: 3 }),
  ];
  t.same(demand(jobs, { quotas }), {
    ranks: 8,
    admitted: ['a', 'c', 'd'],
    refused: { b: 'quota' },
  });
  t.same(
    demand([jobOf('a', { need: 6, held: 6, project: 'p' })], { quotas }).ranks,
    6,
    'a running job continues',
  );
});

t.test('the remainder goes to jobs that can grow, in the same order', async (t) => {
  const jobs = [jobOf('a', { need: 2, want: 5 }), jobOf('b', { need: 2, want: 20 })];
  t.equal(demand(jobs).ranks, 10);
  t.equal(demand(jobs, { ranks: 6 }).ranks, 6);
  t.equal(demand([jobOf('a', { need: 2, want: 5 })]).ranks, 5, 'up to their maximum');
});

t.test('grants whole multiples only', async (t) => {
  const job = jobOf('a', { need: 4, want: 16, multiple: 4 });
  t.equal(demand([job], { ranks: 11 }).ranks, 8);
  t.equal(demand([job], { ranks: 12 }).ranks, 12);
  t.equal(demand([job], { ranks: 7 }).ranks, 4);
});

t.test('growth respects the quota of the project', async (t) => {
  const quotas = { p: 5 };
  const job = (fields: Partial<JobDemand>) => jobOf('a', { project: 'p', ...fields });
  t.equal(demand([job({ need: 2, want: 9 })], { quotas }).ranks, 5);
  t.equal(
    demand([job({ need: 2, want: 9, held: 8 })], { quotas }).ranks,
    8,
    'a job keeps the ranks that it holds',
  );
  t.equal(demand([job({ need: 7, want: 9, held: 7 })], { quotas }).ranks, 7);
  t.equal(
    demand([job({ need: 2, want: 9, held: 8 })], { quotas, ranks: 6 }).ranks,
    6,
    'within the available machines',
  );
  const two = [job({ need: 2, want: 9 }), jobOf('b', { project: 'p', need: 2, want: 9 })];
  t.equal(demand(two, { quotas }).ranks, 5, 'two jobs share the quota');
});
