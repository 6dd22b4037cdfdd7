import t from 'tap';
import { detailsOf, isBad } from './event-text.js';
import { bytes, count, duration, portion, ranks, words } from './numbers.js';

t.test('numbers and names', async (t) => {
  t.same([count(1234567), count(null), ranks(1), ranks(3)], ['1,234,567', '–', '1 rank', '3 ranks']);
  t.same([0, 999, 999.4, 999.6, 1000, 14_300, 99_960, 150_000, 1.5e9, 999_500, 5e18].map(bytes), [
    '0 B',
    '999 B',
    '999 B',
    '1.0 kB',
    '1.0 kB',
    '14.3 kB',
    '100 kB',
    '150 kB',
    '1.5 GB',
    '1.0 MB',
    '5000 PB',
  ]);
  t.same([0, 0.004, 0.31, 1].map(portion), ['0 %', '0.4 %', '31 %', '100 %']);
  t.equal(words('checkpoint.save_request'), 'checkpoint save request');
});

t.test('durations', async (t) => {
  t.same([null, 0, 59.4, 59.6, 3599, 3599.6, 7290, 100_000].map(duration), [
    '–',
    '0 s',
    '59 s',
    '1 min 0 s',
    '59 min 59 s',
    '1 h 0 min',
    '2 h 1 min',
    '1 d 3 h',
  ]);
});

t.test('events in words', async (t) => {
  t.equal(detailsOf({ type: 'job.created', data: { spec: {} } }), '');
  t.equal(
    detailsOf({ type: 'job.state', data: { from: 'running', to: 'queued', reason: 'worker_draining' } }),
    'running → queued · worker draining',
  );
  t.equal(
    detailsOf({ type: 'checkpoint.committed', data: { step: 1200, world_size: 1, bytes: 2048 } }),
    'step 1,200 · 1 rank · 2.0 kB',
  );
  const counts = { documents: 3, tokens: 20, targets: 10, sequences: 5 };
  const mixture = [0.75, 0.25].map((share, i) => ({ dataset: `ds_${i}`, share }));
  t.equal(
    detailsOf({ type: 'data.prepared', data: { ...counts, mixture } }),
    '3 documents · 20 tokens, 10 of them learned · 5 sequences · 75 % ds_0 · 25 % ds_1',
  );
  t.equal(
    detailsOf({
      type: 'other',
      data: { num_steps: 1000, seconds: 0.123456, write_bytes: 1024, of: {}, none: null },
    }),
    'num steps 1,000 · seconds 0.1235 · write bytes 1.0 kB',
  );
  t.ok(isBad({ type: 'rank.lost', data: {} }));
  t.ok(isBad({ type: 'job.state', data: { to: 'failed' } }));
  t.notOk(isBad({ type: 'job.state', data: { to: 'running' } }));
});
