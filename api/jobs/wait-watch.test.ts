/** Jobs that waited too long: the job store changes the record, the watch stores the document. */
import t from 'tap';
import type { Job } from '../../contracts/index.js';
import { desiredKey } from '../../formats/checkpoint/layout.js';
import { createLogger } from '../../platform/logging/logging.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import { initialJob } from '../../state/index.js';
import { testSpec } from '../../state/testing/jobs.js';
import { watchWaits } from './wait-watch.js';

const log = createLogger({ level: 'silent', name: 'test' });
const spec = testSpec('ds_01J00000000000000000000000');

const job = (id: string, changes: Partial<Job>): Job => ({
  ...initialJob(id, spec, new Date().toISOString()),
  ...changes,
});

/** A watch over batches of expired jobs; `done` resolves after the last batch. */
async function watch(t: { testdir(): string }, jobs: readonly Job[], rounds: (string[] | Error)[]) {
  const objects = await openObjectStore(new URL(`file://${t.testdir()}`).href);
  let watched: { close(): Promise<void> } | undefined;
  await new Promise<void>((resolve) => {
    const expireWaiting = async () => {
      const round = rounds.shift();
      if (round instanceof Error) throw round;
      if (!round) resolve();
      return round ?? [];
    };
    const getJob = async (id: string) => jobs.find((known) => known.id === id) ?? null;
    watched = watchWaits({ store: { expireWaiting, getJob }, objects, log }, 1);
  });
  await watched?.close();
  return async (id: string): Promise<unknown> => {
    const key = desiredKey(id);
    return (await objects.head(key)) ? JSON.parse((await objects.get(key)).toString()) : null;
  };
}

t.test('a stopped job is stored in the object store with its final state', async (t) => {
  const jobs = [
    job('job_paused', { state: 'paused', reason: 'budget_reached', epoch: 3 }),
    job('job_cancelled', { state: 'cancelled', reason: 'budget_reached' }),
  ];
  const desired = await watch(t, jobs, [['job_paused', 'job_cancelled']]);
  t.match(await desired('job_paused'), { desired: 'pause', reason: 'budget_reached', epoch: 4 });
  t.match(await desired('job_cancelled'), { desired: 'cancel', reason: 'budget_reached' });
});

t.test('a concurrent request of a client is not overwritten', async (t) => {
  const jobs = [
    job('job_resumed', { state: 'queued', reason: 'user_request' }),
    job('job_stopped', { state: 'cancelled', reason: 'user_request' }),
  ];
  const desired = await watch(t, jobs, [['job_resumed', 'job_stopped', 'job_gone']]);
  for (const id of ['job_resumed', 'job_stopped', 'job_gone']) t.equal(await desired(id), null);
});

t.test('an unavailable job store is retried', async (t) => {
  const jobs = [job('job_paused', { state: 'paused', reason: 'budget_reached' })];
  const desired = await watch(t, jobs, [new Error('away'), [], new Error('away'), ['job_paused']]);
  t.match(await desired('job_paused'), { desired: 'pause' });
});
