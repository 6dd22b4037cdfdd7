import t from 'tap';
import type { Job, Problem } from '../../../contracts/index.js';
import { desiredKey } from '../../../formats/checkpoint/layout.js';
import { startTestStack } from '../../testing/stack.js';

t.test('pause, resume and cancel', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const act = (job: Job, action: string, payload?: object) =>
    stack.request({ method: 'POST', url: `/v1/jobs/${job.id}/${action}`, ...(payload && { payload }) });

  t.test('a queued job pauses at once, and resumes on another number of ranks', async (t) => {
    const job = await stack.createJob();
    const paused = await act(job, 'pause');
    t.equal(paused.statusCode, 202);
    t.equal(paused.json<Job>().state, 'paused');
    const resumed = await act(job, 'resume', { ranks: 3 });
    t.equal(resumed.statusCode, 202);
    t.match(resumed.json<Job>(), { state: 'queued', requested_ranks: 3, attempt: 2 });
  });

  t.test('a repeated request changes nothing', async (t) => {
    const job = await stack.createJob();
    const first = (await act(job, 'pause')).json<Job>();
    t.equal((await act(job, 'pause')).json<Job>().state_version, first.state_version);
    const cancelled = (await act(job, 'cancel')).json<Job>();
    t.equal(cancelled.state, 'cancelled');
    t.equal((await act(job, 'cancel')).json<Job>().state_version, cancelled.state_version);
  });

  t.test('a running job receives a request and keeps its state', async (t) => {
    const job = await stack.createJob();
    const claim = await stack.store.claimAttempt(job.id, 1, 'worker-a', 10_000);
    if (!claim.granted) throw new Error(claim.code);
    await stack.store.transition(job.id, claim.execution, 'starting');
    await stack.store.transition(job.id, claim.execution, 'running', { patch: { world_size: 2 } });
    t.equal((await act(job, 'pause')).json<Job>().state, 'pausing');
    t.equal((await act(job, 'cancel')).json<Job>().state, 'cancelling');
    t.equal((await stack.store.renewLease(job.id, claim.execution, 10_000)).desired, 'cancel');
  });

  t.test("resume refuses a number of ranks outside the job's range", async (t) => {
    const job = await stack.createJob();
    await act(job, 'pause');
    const tooMany = await act(job, 'resume', { ranks: 5 });
    t.equal(tooMany.statusCode, 422);
    t.match(tooMany.json<Problem>().errors, [
      { pointer: '/ranks', code: 'ranks_out_of_range', suggestion: '4' },
    ]);
    const experts = await stack.createJob({
      model: { preset: 'mixtral-tiny' },
      zero: { expert_parallel_size: 2 },
      resources: { ranks: { max: 4 } },
    });
    await act(experts, 'pause');
    t.match((await act(experts, 'resume', { ranks: 3 })).json<Problem>().errors, [
      { pointer: '/ranks', code: 'expert_parallel_not_divisor', suggestion: '2' },
    ]);
    t.match((await act(job, 'resume', { rank: 2 })).json<Problem>().errors, [
      { code: 'unknown_field', suggestion: 'ranks' },
    ]);
  });

  t.test('resume takes an empty body, with or without a content type', async (t) => {
    const job = await stack.createJob();
    const url = `/v1/jobs/${job.id}/resume`;
    await act(job, 'pause');
    t.match((await stack.request({ method: 'POST', url })).json<Job>(), {
      state: 'queued',
      requested_ranks: 2,
    });
    await act(job, 'pause');
    const headers = { 'content-type': 'application/json' };
    t.equal((await stack.request({ method: 'POST', url, headers, payload: '' })).statusCode, 202);
  });

  t.test('refused in other states', async (t) => {
    const job = await stack.createJob();
    const queued = await act(job, 'resume');
    t.equal(queued.statusCode, 409);
    t.equal(queued.json<Problem>().code, 'invalid_state');
    await act(job, 'cancel');
    for (const action of ['pause', 'resume']) {
      const reply = await act(job, action);
      t.equal(reply.statusCode, 409);
      t.equal(reply.json<Problem>().code, 'job_final');
    }
  });

  t.test('resize changes the requested ranks in every state that is not final', async (t) => {
    const job = await stack.createJob();
    const queued = await act(job, 'resize', { ranks: 3 });
    t.equal(queued.statusCode, 202);
    t.match(queued.json<Job>(), { state: 'queued', requested_ranks: 3 });
    const kept = async () => JSON.parse(String(await stack.objects.get(desiredKey(job.id))));
    t.match(await kept(), { desired: 'run', ranks: 3 }, 'stored for recovery from an empty Redis');
    const claim = await stack.store.claimAttempt(job.id, 1, 'worker-a', 10_000);
    if (!claim.granted) throw new Error(claim.code);
    t.match((await act(job, 'resize', { ranks: 1 })).json<Job>(), {
      state: 'provisioning',
      requested_ranks: 1,
    });
    t.match(await stack.store.renewLease(job.id, claim.execution, 10_000), {
      desired: 'run',
      requested_ranks: 1,
    });
    await act(job, 'resize', { ranks: 1 });
    const events = await stack.store.readStream(job.id, null, 100, ['event']);
    const published = events.flatMap((entry) => (entry.kind === 'event' ? [entry] : []));
    t.match(
      published.filter(({ type }) => type === 'resize.requested').map(({ data }) => data),
      [
        { from: 2, to: 3 },
        { from: 3, to: 1 },
      ],
    );
    t.equal(
      published.filter(({ type }) => type === 'resize.requested').length,
      2,
      'a repeated request has no further effect',
    );
    t.match((await act(job, 'resize', { ranks: 5 })).json<Problem>().errors, [
      { code: 'ranks_out_of_range' },
    ]);
    t.match((await act(job, 'resize', {})).json<Problem>().errors, [{ code: 'missing_field' }]);
    await act(job, 'cancel');
    t.equal((await act(job, 'resize', { ranks: 2 })).json<Problem>().code, 'invalid_state');
  });

  t.test('a job that does not exist', async (t) => {
    const job = { id: 'job_00000000000000000000000000' } as Job;
    for (const action of ['pause', 'resume', 'cancel']) {
      t.equal((await act(job, action)).json<Problem>().code, 'job_not_found', action);
    }
    t.equal((await act(job, 'resize', { ranks: 2 })).json<Problem>().code, 'job_not_found');
  });
});
