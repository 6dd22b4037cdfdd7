import t from 'tap';
import type { ProjectUsage } from '../../../contracts/types.js';
import { firstDay, heightsOf, periodOf, projectOf, sharesOf, usedDays } from './usage.js';

t.test('a period of days', async (t) => {
  for (const [text, days] of [
    ['', 30],
    ['days=7', 7],
    ['days=8', 30],
    ['days=x', 30],
  ] as const)
    t.equal(periodOf(new URLSearchParams(text)), days, text);
  const now = Date.parse('2026-03-01T23:59:59Z');
  t.same([firstDay(1, now), firstDay(7, now)], ['2026-03-01', '2026-02-23']);
});

t.test('bars', async (t) => {
  t.same(heightsOf([0, 1, 4]), [0, 25, 100]);
  t.same(heightsOf([0, 0]), [0, 0]);
  t.same(heightsOf([]), []);
});

t.test('days without use are left out', async (t) => {
  const none = { jobs: 0, run_seconds: 0, rank_seconds: 0, cost: 0, tokens: 0 };
  const days = [
    { ...none, date: '2026-01-01', jobs: 1 },
    { ...none, date: '2026-01-02' },
    { ...none, date: '2026-01-03', tokens: 5 },
  ];
  t.same(
    usedDays(days).map(({ date }) => date),
    ['2026-01-03', '2026-01-01'],
  );
});

t.test('use of a quota', async (t) => {
  const used = { jobs: 3, ranks: 6, storage_bytes: 2048 };
  const quota = { max_jobs: 20, max_ranks: null, max_storage_bytes: 1024 };
  t.strictSame(sharesOf({ used, quota }), [
    { label: 'Unfinished runs', used: 3, limit: 20, text: '3 of 20' },
    { label: 'Ranks', used: 6, limit: null, text: '6 (no limit)' },
    { label: 'Storage', used: 2048, limit: 1024, text: '2.0 kB of 1.0 kB' },
  ]);
});

t.test('runs that have not ended count', async (t) => {
  const quota = { max_jobs: 20, max_ranks: null, max_storage_bytes: null };
  const usage = {
    jobs: { queued: 1, running: 2, paused: 1, succeeded: 7, failed: 3, cancelled: 2 },
    ranks: 5,
    storage: { total_bytes: 9 },
    quota,
  } as unknown as ProjectUsage;
  t.same(projectOf(usage), { used: { jobs: 4, ranks: 5, storage_bytes: 9 }, quota });
});
