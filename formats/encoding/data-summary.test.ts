import t from 'tap';
import { DataCounts } from './data-summary.js';

t.test('documents, tokens and targets are counted, however the tokens are split', async (t) => {
  const counts = new DataCounts(4, 'whole');
  counts.add({ tokens: Uint16Array.of(7, 9, 1), counts: null, starts: true });
  counts.add({ tokens: Uint16Array.of(5, 5), counts: Uint8Array.of(0, 1), starts: false });
  t.equal(counts.maxToken, 9);
  counts.add({ tokens: Uint32Array.of(2, 70_000, 2, 2), counts: Uint8Array.of(1, 1, 0, 1), starts: true });
  counts.add({ tokens: Uint16Array.of(1, 2), counts: null, starts: false });
  t.same(counts.end(), {
    documents: 2,
    tokens: 11,
    targets: 2 + 1 + 2 + 2,
    max_token: 70_000,
    long_documents: 1,
    flaws: { cut: { texts: 1, first_line: null, needed_length: 5 } },
  });
  const none = { documents: 0, tokens: 0, targets: 0, max_token: -1, long_documents: 0 };
  t.same(new DataCounts(4, 'whole').end(), { ...none, flaws: {} });
});

t.test('flaws are counted once for each document', async (t) => {
  const counts = new DataCounts(4, 'whole');
  const piece = { tokens: Uint16Array.of(1), counts: null };
  counts.add({ ...piece, starts: true, line: 2 });
  counts.add({ ...piece, starts: true, line: 4, flaws: ['no_stop_token'] });
  counts.add({ ...piece, starts: false });
  counts.add({ ...piece, starts: true, line: 4, flaws: ['no_stop_token', 'repeated_begin'] });
  t.equal(counts.sources, 2);
  t.same(counts.end(), {
    ...counts.end(),
    documents: 3,
    flaws: { no_stop_token: { texts: 2, first_line: 4 }, repeated_begin: { texts: 1, first_line: 4 } },
  });
});
