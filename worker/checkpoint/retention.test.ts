import t from 'tap';
import type { Checkpoint } from '../../contracts/index.js';
import { superseded } from './retention.js';

function checkpoint(step: number, fields: Partial<Checkpoint> = {}): Checkpoint {
  const committed_at = new Date(step * 1000).toISOString();
  const digest = { state_digest: '0'.repeat(32), bytes: 1, world_size: 1 };
  return {
    id: `c${step}`,
    job_id: 'job',
    step,
    ...digest,
    committed_at,
    pinned: false,
    prefix: `p${step}`,
    ...fields,
  };
}

const ids = (checkpoints: Checkpoint[]) => checkpoints.map(({ id }) => id);

t.test('all but the newest k are given up, whatever their order', async (t) => {
  const all = [10, 40, 20, 30].map((step) => checkpoint(step));
  t.strictSame(ids(superseded(all, { keep_last: 2 })), ['c20', 'c10']);
  t.strictSame(ids(superseded(all, { keep_last: 4 })), []);
  t.strictSame(ids(superseded(all, { keep_last: 9 })), []);
});

t.test('a pinned one stays and takes no place of a newer one', async (t) => {
  const all = [checkpoint(10, { pinned: true }), checkpoint(20), checkpoint(30)];
  t.strictSame(ids(superseded(all, { keep_last: 1 })), ['c20']);
});

t.test('of two of one step the later one is the newer', async (t) => {
  const first = checkpoint(10, { id: 'first', committed_at: '2026-01-01T00:00:00Z' });
  const second = checkpoint(10, { id: 'second', committed_at: '2026-01-02T00:00:00Z' });
  t.strictSame(ids(superseded([first, second], { keep_last: 1 })), ['first']);
});

t.test('one of every n-th step stays, beside the newest', async (t) => {
  const all = [10, 15, 20, 25, 30].map((step) => checkpoint(step));
  t.strictSame(ids(superseded(all, { keep_last: 1, keep_every: 10 })), ['c25', 'c15']);
  t.strictSame(ids(superseded(all, { keep_last: 2, keep_every: 15 })), ['c20', 'c10']);
});
