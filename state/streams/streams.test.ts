/** The job's stream, progress and checkpoints, and waiting for changes. */

import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Checkpoint, StreamEntry } from '../../contracts/index.js';
import { documentHash } from '../../platform/canonical-json.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { until } from '../../platform/testing/waiting.js';
import type { JobStore } from '../job-store.js';
import type { Control } from '../jobs/control.js';
import { executionAt } from '../testing/executions.js';
import { metric, readAll, runningJob } from '../testing/streams.js';

const LEASE_MS = 60_000;
const server = await startTestRedis();
t.teardown(() => server.stop());
const running = (t: Test) => runningJob(t, server);

/** Returns the positions of the newest two entries. */
async function lastPositions(store: JobStore, id: string): Promise<[string, string]> {
  const [before, last] = (await store.readStream(id, null, 100)).slice(-2);
  if (!before || !last) throw new Error('it has fewer entries');
  return [before.position, last.position];
}

/** Returns a checkpoint whose id falls while its step rises, as when a job moves to a host whose clock is behind. */
function checkpoint(jobId: string, step: number): Checkpoint {
  return {
    id: `ckpt_${String(999_999 - step)}`,
    job_id: jobId,
    step,
    world_size: 2,
    state_digest: String(step).padStart(32, '0'),
    bytes: 100,
    committed_at: new Date().toISOString(),
    pinned: false,
    damaged: false,
    prefix: `jobs/${jobId}/checkpoints/${step}`,
  };
}

t.test('concurrent events and metrics count in one sequence without gaps', async (t) => {
  const { store, id } = await running(t);
  await Promise.all(
    Array.from({ length: 20 }, (_, i) => [
      store.report(id, executionAt(id, 1), [metric(2 * i + 1), metric(2 * i + 2)], null),
      store.appendEvent(id, executionAt(id, 1), { type: 'test.event', data: { i } }),
    ]).flat(),
  );
  for (const page of [1, 3, 7, 1000]) {
    const all = await readAll(store, id, page);
    t.same(
      all.map(({ seq }) => seq),
      [...all.keys()].map((i) => i + 1),
      `in pages of ${page}`,
    );
    t.equal(all.filter(({ kind }) => kind === 'metric').length, 40);
    t.equal(all.filter((entry) => entry.kind === 'event' && entry.type === 'test.event').length, 20);
  }
  const metrics = await store.readStream(id, null, 1000, ['metric']);
  t.equal(metrics.length, 40);
  const [, , third] = await store.readStream(id, null, 3);
  const events = await store.readStream(id, third?.position ?? null, 1000, ['event']);
  t.equal(events.length, 20);
  t.ok(events.every(({ seq, kind }) => seq > 3 && kind === 'event'));
  t.same(await store.readStream(id, null, 10, []), []);
});

t.test('metrics and progress', async (t) => {
  const { store, id } = await running(t);
  const progress = {
    step: 5,
    total_steps: 100,
    tokens: 50,
    percent: 5,
    loss: null,
    tokens_per_second: 12.5,
    eta_seconds: 3,
  };
  const seq = await store.report(
    id,
    executionAt(id, 1),
    [{ ...metric(5), loss: null, at: '2026-01-01T00:00:00.000Z' }],
    progress,
  );
  const entry = (await store.readStream(id, null, 100)).at(-1);
  t.match(entry?.position, new RegExp(`^[0-9a-f]{8}-${seq}-[0-9a-f]{13}$`));
  t.same(entry, {
    ...metric(5),
    seq,
    position: entry?.position,
    kind: 'metric',
    at: '2026-01-01T00:00:00.000Z',
    loss: null,
    epoch: 1,
  });
  t.same((await store.getJob(id))?.progress, progress);
  t.equal(await store.report(id, executionAt(id, 1), [], null), seq, 'an empty report adds nothing');
  t.same((await store.getJob(id))?.progress, progress, 'and leaves the progress');
});

t.test('a repeated batch adds nothing', async (t) => {
  const { store, id } = await running(t);
  const first = await store.report(id, executionAt(id, 1), [metric(1)], null, { batch: 1 });
  t.equal(await store.report(id, executionAt(id, 1), [metric(1)], null, { batch: 1 }), first);
  t.equal(await store.report(id, executionAt(id, 1), [metric(2)], null, { batch: 2 }), first + 1);
  await store.claimAttempt(id, 1, 'a', LEASE_MS);
  await store.report(id, executionAt(id, 2), [metric(2)], null, { batch: 1 });
  t.match(await store.readStream(id, null, 10, ['metric']), [
    { step: 1, epoch: 1 },
    { step: 2, epoch: 1 },
    { step: 2, epoch: 2 },
  ]);
});

t.test('waiting for the stream', async (t) => {
  const { store, id } = await running(t);
  const [before, last] = await lastPositions(store, id);
  t.equal(await store.waitStream(id, before, { timeoutMs: 60_000 }), true, 'an existing entry');
  t.equal(await store.waitStream(id, last, { timeoutMs: 30 }), false, 'no new entry');
  t.equal(await store.waitStream('job_none', null, { timeoutMs: 10 }), false);

  const waits = Array.from({ length: 5 }, () => store.waitStream(id, last, { timeoutMs: 60_000 }));
  await sleep(20);
  await store.report(id, executionAt(id, 1), [metric(1)], null);
  t.same(await Promise.all(waits), [true, true, true, true, true], 'all waiters are woken');

  const [, now] = await lastPositions(store, id);
  const abort = new AbortController();
  const aborted = store.waitStream(id, now, { timeoutMs: 60_000, signal: abort.signal });
  abort.abort();
  t.equal(await aborted, false);
  t.equal(await store.waitStream(id, now, { timeoutMs: 60_000, signal: abort.signal }), false);
});

t.test('a reader that waits and reads never misses an entry', async (t) => {
  const { store, id } = await running(t);
  const seen: StreamEntry[] = [];
  const reader = (async () => {
    while (seen.length < 60) {
      const after = seen.at(-1)?.position ?? null;
      if (!(await store.waitStream(id, after, { timeoutMs: 10_000 }))) return;
      seen.push(...(await store.readStream(id, after, 7)));
    }
  })();
  for (let step = 1; step <= 60; step += 1) {
    await store.report(id, executionAt(id, 1), [metric(step)], null);
    if (step % 10 === 0) await sleep(5);
  }
  await reader;
  t.same(
    seen.slice(0, 60).map(({ seq }) => seq),
    [...Array(60).keys()].map((i) => i + 1),
  );
});

t.test('watching the control state', async (t) => {
  const { store, id } = await running(t);
  const seen: Control[] = [];
  const unsubscribe = await store.watchControl(id, (control) => seen.push(control));
  const first = {
    desired: 'run',
    state: 'provisioning',
    save_request: 0,
    requested_ranks: 1,
    overrides: documentHash([]),
    preemption_request: null,
    held_ranks: 0,
    moves: false,
  };
  t.same(seen, [first], 'the current value comes first');
  await store.requestPause(id);
  await until(() => seen.at(-1)?.desired === 'pause');
  await store.requestCancel(id);
  await until(() => seen.at(-1)?.desired === 'cancel');
  t.match(seen.at(-1), { desired: 'cancel', state: 'cancelling' });

  await unsubscribe();
  await unsubscribe();
  const count = seen.length;
  await store.finishJob(id, executionAt(id, 1), 'cancelled');
  await sleep(20);
  t.equal(seen.length, count, 'no call after the end');
});

t.test('checkpoints', async (t) => {
  const { store, id } = await running(t);
  await store.transition(id, executionAt(id, 1), 'starting', { patch: { error_count: 2 } });
  const [one, two, three] = [checkpoint(id, 1), checkpoint(id, 2), checkpoint(id, 3)] as const;
  await store.commitCheckpoint(id, executionAt(id, 1), one);
  await store.commitCheckpoint(id, executionAt(id, 1), two);
  await store.commitCheckpoint(id, executionAt(id, 1), two);
  await store.commitCheckpoint(id, executionAt(id, 1), { ...three, pinned: true });
  t.same((await store.getJob(id))?.latest_checkpoint, {
    id: three.id,
    step: 3,
    state_digest: three.state_digest,
  });
  const events = (await store.readStream(id, null, 100, ['event'])).filter(
    (entry) => entry.kind === 'event' && entry.type === 'checkpoint.committed',
  );
  t.match(
    events,
    [{ data: { id: one.id } }, { data: { id: two.id } }, { data: { id: three.id } }],
    'once each',
  );
  const claim = await store.claimAttempt(id, 1, 'a', LEASE_MS);
  t.match(claim, { error_count: 0 }, 'a commit resets the error budget');

  const first = await store.listCheckpoints(id, { limit: 2 });
  t.match(first, {
    data: [{ id: three.id, pinned: true }, { id: two.id }],
    next_cursor: `${String(two.step).padStart(12, '0')}:${two.id}`,
  });
  t.match(await store.listCheckpoints(id, { limit: 2, after: `${first.next_cursor}` }), {
    data: [{ id: one.id }],
    next_cursor: null,
  });

  t.same(await store.findCheckpoint(one.id), { job_id: id, checkpoint: one });
  t.equal(await store.findCheckpoint('ckpt_x'), null);

  await t.rejects(store.removeCheckpoint(id, executionAt(id, 2), three.id), { code: 'checkpoint_pinned' });
  t.equal(await store.removeCheckpoint(id, executionAt(id, 2), one.id), true);
  t.same(await store.findCheckpoint(one.id), { job_id: id, checkpoint: null }, 'it existed once');
  t.equal(await store.removeCheckpoint(id, executionAt(id, 2), one.id), false);
  await store.transition(id, executionAt(id, 2), 'recovering', { patch: { error_count: 1 } });
  await store.commitCheckpoint(id, executionAt(id, 2), two);
  t.match(await store.getJob(id), { latest_checkpoint: { id: two.id } }, 'a fall-back to an older one');
  t.match(await store.claimAttempt(id, 1, 'a', LEASE_MS), { error_count: 1 }, 'is no progress');
  t.equal(await store.removeCheckpoint(id, executionAt(id, 3), two.id), true);
  t.match(await store.getJob(id), { latest_checkpoint: { id: three.id, step: 3 } }, 'the newest of the rest');
});

t.test('after the newest checkpoint is removed, the previous one is the latest', async (t) => {
  const { store, id } = await running(t);
  const [one, two] = [checkpoint(id, 1), checkpoint(id, 2)] as const;
  await store.commitCheckpoint(id, executionAt(id, 1), one);
  await store.commitCheckpoint(id, executionAt(id, 1), two);
  t.equal(await store.removeCheckpoint(id, executionAt(id, 1), two.id), true);
  t.match(await store.getJob(id), { latest_checkpoint: { id: one.id, step: 1 } });
  t.equal(await store.removeCheckpoint(id, executionAt(id, 1), one.id), true);
  t.match(await store.getJob(id), { latest_checkpoint: null });
});
