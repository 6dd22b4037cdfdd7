import t from 'tap';
import type { JobLog } from '../../../contracts/types.js';
import { LINES_HELD, LINES_SHOWN, ranksIn, shownLines, withLines } from './log-lines.js';

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
