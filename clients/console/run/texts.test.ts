import t from 'tap';
import type { JobLog } from '../../../contracts/types.js';
import { detailsOf, isBad } from './event-text.js';
import { LINES_HELD, LINES_SHOWN, ranksIn, shownLines, withLines } from './log-lines.js';

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

const line = (seq: number, rank: number | null, message: string, stream: JobLog['stream'] = 'stdout') =>
  ({ seq, rank, message, stream }) as JobLog;

t.test('lines of a log', async (t) => {
  const lines = [line(1, null, 'of the worker', 'worker'), line(2, 1, 'One'), line(3, 0, 'two', 'stderr')];
  const seqs = (filter: Partial<Parameters<typeof shownLines>[1]>) =>
    shownLines(lines, { text: '', rank: 'all', stream: 'all', ...filter }).map(({ seq }) => seq);
  t.same(seqs({}), [1, 2, 3]);
  t.same(seqs({ text: 'ONE' }), [2]);
  t.same(seqs({ rank: '0' }), [3]);
  t.same(seqs({ rank: 'worker' }), [1]);
  t.same(seqs({ stream: 'stderr' }), [3]);
  t.same(ranksIn(lines), ['worker', '0', '1']);
  const many = Array.from({ length: LINES_HELD + 10 }, (_, seq) => line(seq, 0, 'x'));
  t.equal(withLines(many.slice(0, 100), many.slice(100)).length, LINES_HELD);
  const shown = shownLines(many, { text: '', rank: 'all', stream: 'all' });
  t.equal(shown.length, LINES_SHOWN);
  t.equal(shown.at(-1)?.seq, LINES_HELD + 9);
});
