import t from 'tap';
import type { Job, Sweep } from '../../contracts/index.js';
import type { StoredSweep } from '../../state/index.js';
import { smallSpec, startTestStack } from '../testing/stack.js';
import { performTasks } from './tasks.js';

t.test('a resumption is over only for the version of the job that was read', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { store } = stack;
  const dataset = await stack.upload('to be or not to be. '.repeat(100));
  const payload = smallSpec(dataset.id);
  const job = (await stack.request({ method: 'POST', url: '/v1/jobs', payload })).json<Job>();
  const sweep = { problem: null, ended_at: null, runs: [] as Sweep['runs'] } as Sweep;
  const common = { id: `swp_${'0'.repeat(26)}`, project: 'default', name: 'n', bytes: 0 } as const;
  const stored: StoredSweep = { ...common, sweep, tasks: { [job.id]: 'resume' } };
  await store.putSweep(stored);
  const resume = async (read: Job) => (await performTasks(stack, stored, new Map([[job.id, read]]))).tasks;

  await store.requestPause(job.id);
  t.same(await resume(job), stored.tasks, 'another server has paused it since');
  const paused = (await store.getJob(job.id)) as Job;
  t.same(await resume(paused), {});
  t.match(await store.getJob(job.id), { state: 'queued' });
  t.same(await resume(paused), stored.tasks, 'another server has resumed it since');
  t.same(await resume((await store.getJob(job.id)) as Job), {});
  t.match(await store.getJob(job.id), { state: 'queued' });
});
