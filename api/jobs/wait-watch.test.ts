/** What becomes of jobs that waited too long: the record by the job store, the document by the watch. */
import t from 'tap';
import type { Job } from '../../contracts/index.js';
import { desiredKey } from '../../platform/checkpoint/layout.js';
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

/** A watch over rounds of expired jobs; after the last of them, `done` resolves. */
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

t.test('that a job was stopped is kept in the object store, as what it was', async (t) => {
  const jobs = [
    job('job_paused', { state: 'paused', reason: 'budget_reached', epoch: 3 }),
    job('job_cancelled', { state: 'cancelled', reason: 'budget_reached' }),
  ];
  const desired = await watch(t, jobs, [['job_paused', 'job_cancelled']]);
  t.match(await desired('job_paused'), { desired: 'pause', reason: 'budget_reached', epoch: 4 });
  t.match(await desired('job_cancelled'), { desired: 'cancel', reason: 'budget_reached' });
});

t.test('what a person has asked for meanwhile is not written over', async (t) => {
  const jobs = [
    job('job_resumed', { state: 'queued', reason: 'user_request' }),
    job('job_stopped', { state: 'cancelled', reason: 'user_request' }),
  ];
  const desired = await watch(t, jobs, [['job_resumed', 'job_stopped', 'job_gone']]);
  for (const id of ['job_resumed', 'job_stopped', 'job_gone']) t.equal(await desired(id), null);
});

t.test('a job store that does not answer is asked again', async (t) => {
  const jobs = [job('job_paused', { state: 'paused', reason: 'budget_reached' })];
  const desired = await watch(t, jobs, [new Error('away'), [], new Error('away'), ['job_paused']]);
  t.match(await desired('job_paused'), { desired: 'pause' });
});
