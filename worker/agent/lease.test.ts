import t, { type Test } from 'tap';
import { ZerofleetError } from '../../contracts/index.js';
import type { Control } from '../../platform/job-store/port.js';
import { createLogger } from '../../platform/logging.js';
import { Lease } from './lease.js';

const log = createLogger({ level: 'silent', name: 'test' });
const control: Control = {
  desired: 'run',
  state: 'running',
  epoch: 3,
  save_request: 0,
  requested_ranks: 1,
  ask: null,
};
const away = () => new ZerofleetError('job_store_unavailable', 'away');

function lease(t: Test, renewLease: () => Promise<Control>, lease_ms = 90) {
  const seen: Control[] = [];
  const options = { store: { renewLease }, job_id: 'job', epoch: 3, lease_ms, log };
  const held = new Lease({ ...options, onControl: (now) => seen.push(now) }, performance.now());
  t.teardown(() => held.close());
  return { held, seen };
}

const aborted = (signal: AbortSignal) =>
  new Promise<unknown>((resolve) =>
    signal.addEventListener('abort', () => resolve(signal.reason), { once: true }),
  );

t.test('it lasts as long as it is renewed, and each renewal tells what people want', async (t) => {
  // Renewed three times in its length, and long enough for a machine that stalls.
  const { held, seen } = lease(t, async () => control, 1_500);
  while (seen.length < 4) await new Promise((resolve) => setTimeout(resolve, 10));
  t.equal(held.lost.aborted, false);
  t.strictSame(seen[0], control);
});

t.test('it is lost when another worker has the job', async (t) => {
  const { held } = lease(t, async () => {
    throw new ZerofleetError('stale_epoch', 'epoch 4');
  });
  t.match(await aborted(held.lost), { code: 'stale_epoch', message: 'epoch 4' });
});

t.test('it is lost when the store is silent for its whole length, not before', async (t) => {
  const begin = performance.now();
  const { held } = lease(t, () => Promise.reject(away()));
  t.match(await aborted(held.lost), { code: 'stale_epoch' });
  t.ok(performance.now() - begin >= 90);
});

t.test('a store that hangs is a store that is silent', async (t) => {
  const { held } = lease(t, () => new Promise(() => undefined));
  t.match(await aborted(held.lost), { code: 'stale_epoch' });
});

t.test('a write is repeated while the store is away', async (t) => {
  const { held } = lease(t, async () => control, 60_000);
  let tries = 0;
  const result = await held.call(async (jobId, epoch) => {
    if (++tries < 3) throw away();
    return { jobId, epoch };
  });
  t.strictSame({ tries, result }, { tries: 3, result: { jobId: 'job', epoch: 3 } });
});

t.test('a refused write ends the lease only when it was fenced', async (t) => {
  const { held } = lease(t, async () => control, 60_000);
  const refuse = (code: 'invalid_transition' | 'stale_epoch' | 'job_final') => () =>
    Promise.reject(new ZerofleetError(code, ''));
  await t.rejects(held.call(refuse('invalid_transition')), { code: 'invalid_transition' });
  t.equal(held.lost.aborted, false);
  await t.rejects(held.call(refuse('stale_epoch')), { code: 'stale_epoch' });
  t.equal(held.lost.aborted, true);
  await t.rejects(
    held.call(async () => 1),
    { code: 'stale_epoch' },
  );
});
