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
  });
  t.same(new DataCounts(4).end(), { documents: 0, tokens: 0, targets: 0, max_token: -1, long_documents: 0 });
});
