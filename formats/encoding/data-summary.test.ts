import t from 'tap';
import { DataCounts } from './data-summary.js';

t.test('documents, tokens and targets are counted, however the tokens are split', async (t) => {
  const counts = new DataCounts(4);
  counts.add({ tokens: Uint16Array.of(7, 9, 1), counts: null, starts: true });
  counts.add({ tokens: Uint16Array.of(5, 5), counts: Uint8Array.of(0, 1), starts: false });
  t.equal(counts.max_token, 9);
  counts.add({ tokens: Uint32Array.of(2, 70_000, 2, 2), counts: Uint8Array.of(1, 1, 0, 1), starts: true });
  counts.add({ tokens: Uint16Array.of(1, 2), counts: null, starts: false });
  t.same(counts.end(), {
    documents: 2,
    tokens: 11,
    targets: 2 + 1 + 2 + 2,
    max_token: 70_000,
    long_documents: 1,
    without_stop_token: 0,
    with_two_begins: 0,
  });
  const none = { documents: 0, tokens: 0, targets: 0, max_token: -1, long_documents: 0 };
  t.same(new DataCounts(4).end(), { ...none, without_stop_token: 0, with_two_begins: 0 });
});

t.test('flaws are counted once for each document', async (t) => {
  const counts = new DataCounts(4);
  const piece = { tokens: Uint16Array.of(1), counts: null };
  const flaws = { without_stop_token: true, with_two_begins: false };
  counts.add({ ...piece, starts: true, flaws });
  counts.add({ ...piece, starts: false });
  counts.add({ ...piece, starts: true, flaws: { ...flaws, with_two_begins: true } });
  counts.add({ ...piece, starts: true });
  t.match(counts.end(), { documents: 3, without_stop_token: 2, with_two_begins: 1 });
});
