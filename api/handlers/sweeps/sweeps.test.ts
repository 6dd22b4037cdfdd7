import t from 'tap';
import type { Job, Sweep } from '../../../contracts/index.js';
import { createLogger } from '../../../platform/logging/logging.js';
import { until } from '../../../platform/testing/waiting.js';
import { runSweeps } from '../../sweeps/runner.js';
import { smallSweep } from '../../testing/stack.js';
import {
  found,
  getSweep,
  HALVING_STEPS,
  halvingSweep,
  jobOf,
  jobsOf,
  postSweep,
  settled,
  startWithSweeps,
  trainForSweep,
} from '../../testing/sweeps.js';

const UNKNOWN = `swp_${'0'.repeat(26)}`;

t.test('a grid trains its runs, a few at a time, and finds the best', async (t) => {
  const { stack, dataset } = await startWithSweeps(t);
  const made = await postSweep(stack, '', { ...smallSweep(dataset), max_concurrent: 1 });
  t.equal(made.statusCode, 201, made.body);
  const { id } = made.json<Sweep>();
  t.equal(made.headers.location, `/v1/sweeps/${id}`);
  t.match(made.json(), {
    state: 'running',
    method: 'grid',
    metric: 'eval_loss',
    rungs: [{ step: null, runs: 2 }],
  });
  const begun = await settled(stack, id, ({ runs }) => runs[0]?.state === 'running');
  t.equal(begun.runs[1]?.state, 'waiting');
  const [first = ''] = begun.runs.map(({ job_id }) => job_id);
  await until(async () => (await stack.store.getJob(first)) !== null);
  t.match(await jobOf(stack, first), { name: 'rates lr=0.001', labels: { sweep: id } });
  const listed = await stack.request({ url: `/v1/jobs?label=sweep=${id}` });
  t.match(listed.json(), { data: [{ id: first }] });
  const given = await stack.request({ url: `/v1/jobs/${first}/document` });
  t.match(given.json(), { given: { train: { optimizer: { lr: 0.001 } } } });
  const wait = await settled(stack, id, ({ runs }) => runs[0]?.state === 'running');
  t.equal(wait.runs[1]?.state, 'waiting', 'only one at a time');

  await stack.store.requestCancel(first);
  const next = await settled(stack, id, ({ runs }) => runs[1]?.state === 'running');
  t.equal(next.runs[0]?.state, 'cancelled');
  const second = next.runs[1]?.job_id ?? '';
  await until(async () => (await stack.store.getJob(second)) !== null);
  const claim = await stack.store.claimAttempt(second, 1, 'worker', 600_000);
  if (!claim.granted) throw new Error(claim.code);
  await stack.store.finishJob(second, claim.execution, 'failed', {
    reason: 'diverged',
    failure: {
      category: 'diverged',
      code: 'diverged',
      message: 'it diverged',
      rank: null,
      step: 1,
      retryable: false,
    },
  });
  const ended = await settled(stack, id, ({ state }) => state !== 'running');
  t.match(ended, {
    state: 'failed',
    best: null,
    runs: [{}, { state: 'failed', failure: { code: 'diverged' } }],
  });
  t.type(ended.ended_at, 'string');
  const remove = () => stack.request({ method: 'DELETE', url: `/v1/sweeps/${id}` });
  t.equal((await remove()).statusCode, 204);
  t.match((await remove()).json(), { code: 'sweep_not_found' });
  t.not(await stack.store.getJob(first), null, 'its jobs stay');
});

t.test('successive halving pauses at the rungs, and continues with the best', async (t) => {
  const { stack, dataset } = await startWithSweeps(t);
  const { id } = (await postSweep(stack, '', halvingSweep(dataset))).json<Sweep>();
  const sweep = await found(async () => {
    const now = await getSweep(stack, id);
    for (const job of await jobsOf(stack, now))
      if (job?.state === 'queued') await trainForSweep(stack, job.id);
    return now.ended_at === null ? null : now;
  });
  t.match(sweep, {
    state: 'succeeded',
    rungs: [
      { step: 2, runs: 4 },
      { step: 4, runs: 2 },
      { step: null, runs: 1 },
    ],
    best: sweep.runs[1]?.job_id,
  });
  t.same(
    sweep.runs.map(({ state, rung, evaluations }) => [state, rung, evaluations.map(({ step }) => step)]),
    [
      ['stopped', 0, [2]],
      ['succeeded', 2, [2, 4, HALVING_STEPS]],
      ['stopped', 0, [2]],
      ['stopped', 1, [2, 4]],
    ],
  );
  t.equal(sweep.runs[1]?.evaluations.at(-1)?.value, 0.001 + 1 / HALVING_STEPS);
  for (const job of await jobsOf(stack, sweep)) t.match(job?.state, /^(succeeded|cancelled)$/);
  await until(async () => (await stack.store.activeSweeps()).length === 0);
});

t.test('pause, resume and cancel reach the jobs', async (t) => {
  const { stack, dataset } = await startWithSweeps(t);
  const { id, runs } = (
    await postSweep(stack, '', { ...smallSweep(dataset), max_concurrent: 1 })
  ).json<Sweep>();
  const [{ job_id: first }] = runs as [Sweep['runs'][number]];
  const reaches = (state: Job['state']) =>
    until(async () => (await stack.store.getJob(first))?.state === state);
  await reaches('queued');
  t.match((await postSweep(stack, `/${id}/pause`)).json(), { state: 'paused' });
  await reaches('paused');
  t.match((await postSweep(stack, `/${id}/resume`)).json(), { state: 'running' });
  await reaches('queued');
  const removed = await stack.request({ method: 'DELETE', url: `/v1/sweeps/${id}` });
  t.match(removed.json(), { code: 'sweep_unfinished' });
  t.match((await postSweep(stack, `/${id}/cancel`)).json(), {
    state: 'cancelled',
    runs: [{ state: 'cancelled' }, { state: 'cancelled' }],
  });
  await reaches('cancelled');
  t.equal((await postSweep(stack, `/${id}/cancel`)).statusCode, 202, 'a repeated request changes nothing');
  for (const action of ['pause', 'resume'])
    t.match((await postSweep(stack, `/${id}/${action}`)).json(), { code: 'sweep_final' });
  t.match((await postSweep(stack, `/${UNKNOWN}/cancel`)).json(), { code: 'sweep_not_found' });
});

t.test('a quota delays runs, and the sweep says so', async (t) => {
  const { stack, dataset } = await startWithSweeps(t);
  await stack.store.putQuota('default', { max_jobs: 1, max_ranks: null, max_storage_bytes: null });
  const { id } = (await postSweep(stack, '', smallSweep(dataset))).json<Sweep>();
  const held = await settled(stack, id, ({ problem }) => problem !== null);
  t.match(held, { state: 'running', problem: { code: 'jobs_quota_exceeded' } });
  await stack.store.putQuota('default', { max_jobs: null, max_ranks: null, max_storage_bytes: null });
  await settled(stack, id, ({ problem }) => problem === null);
  await until(async () => (await jobsOf(stack, held)).every((job) => job !== null));
});

t.test('a run whose dataset was deleted fails, the others go on', async (t) => {
  const { stack, dataset } = await startWithSweeps(t);
  const other = await stack.upload('a b c d e f g h. '.repeat(1000));
  const sweep = smallSweep(dataset);
  const space = { 'data.dataset': { values: [dataset, other.id] } };
  const { id } = (await postSweep(stack, '', { ...sweep, space, max_concurrent: 1 })).json<Sweep>();
  await stack.store.deleteDataset(other.id);
  const begun = await settled(stack, id, ({ runs }) => runs[0]?.state === 'running');
  await until(async () => (await stack.store.getJob(begun.runs[0]?.job_id ?? '')) !== null);
  await stack.store.requestCancel(begun.runs[0]?.job_id ?? '');
  const ended = await settled(stack, id, ({ state }) => state === 'failed');
  t.match(ended.runs[1], { state: 'failed', failure: { code: 'dataset_not_found' } });
});

t.test('a lost sweep is restored and goes on', async (t) => {
  const { stack, dataset } = await startWithSweeps(t, 0);
  const { id } = (await postSweep(stack, '', smallSweep(dataset))).json<Sweep>();
  const log = createLogger({ level: 'silent', name: 'sweeps' });
  const runner = runSweeps({ ...stack, log }, 5);
  const begun = await settled(stack, id, ({ runs }) => runs.every(({ state }) => state === 'running'));
  await until(
    async () => (await stack.store.getSweep('default', id))?.tasks[begun.runs[1]?.job_id ?? ''] === undefined,
  );
  await runner.close();
  await stack.loseRedis();
  t.same(await getSweep(stack, id), begun);
  t.match(await jobsOf(stack, begun), [{ state: 'queued' }, { state: 'queued' }]);
  t.equal((await stack.store.activeSweeps()).length, 1);
});
