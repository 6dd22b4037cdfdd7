import t from 'tap';
import type { Execution } from '../../../contracts/execution.js';
import type { Attempt, Job, JobPatch, Page, Problem } from '../../../contracts/index.js';
import { desiredKey, specKey } from '../../../formats/checkpoint/layout.js';
import { parseDesired, parseSpec } from '../../../state/index.js';
import { startTestStack, type TestStack } from '../../testing/stack.js';

const stack = await startTestStack();
t.teardown(() => stack.close());

const at = ({ id }: Job) => `/v1/jobs/${id}`;
const patch = (job: Job, payload: JobPatch, headers = {}) =>
  stack.request({ method: 'PATCH', url: at(job), payload, headers });
const problem = async (answer: ReturnType<TestStack['request']>) => (await answer).json<Problem>();

async function run(job: Job, attempt = 1): Promise<Execution> {
  const claim = await stack.store.claimAttempt(job.id, attempt, 'worker-a', 60_000);
  if (!claim.granted) throw new Error(claim.code);
  await stack.store.transition(job.id, claim.execution, 'starting');
  await stack.store.transition(job.id, claim.execution, 'running', { patch: { world_size: 2 } });
  return claim.execution;
}

t.test('a patch changes fields that do not affect results', async (t) => {
  const job = await stack.createJob({ labels: { team: 'a', kind: 'x' }, limits: { max_wait: 60 } });
  const reply = await patch(job, {
    priority: 7,
    labels: { team: null, stage: '2' },
    resources: { ranks: { max: 3, preferred: 3 } },
    limits: { max_wait: null, max_runtime: 3600 },
  });
  t.equal(reply.statusCode, 200);
  const changed = reply.json<Job>();
  t.strictSame(changed.labels, { kind: 'x', stage: '2' });
  t.strictSame(changed.spec, {
    ...job.spec,
    priority: 7,
    labels: changed.labels,
    resources: { pool: 'default', ranks: { min: 1, max: 3, preferred: 3 } },
    limits: { on_limit: 'pause', max_runtime: 3600 },
  });
  t.equal(changed.requested_ranks, 3);
  t.ok(changed.state_version > job.state_version);
  const listed = async (label: string) =>
    (await stack.request({ url: `/v1/jobs?label=${label}` })).json<Page<Job>>().data.map(({ id }) => id);
  t.notOk((await listed('team%3Da')).includes(job.id));
  t.ok((await listed('stage%3D2')).includes(job.id));
  const events = await stack.store.readStream(job.id, null, 10, ['event']);
  t.match(events.at(-1), {
    type: 'job.updated',
    data: { changed: ['priority', 'labels', 'resources', 'limits'] },
  });
  const stored = parseSpec(await stack.objects.get(specKey(job.id)));
  t.strictSame(stored.spec, changed.spec, 'recover finds it');
  t.match(parseDesired(await stack.objects.get(desiredKey(job.id))), { desired: 'run', ranks: 3 });
  t.equal((await patch(job, { priority: 7 })).json<Job>().state_version, changed.state_version, 'again');
});

t.test('notes of a job that has ended can be changed', async (t) => {
  const job = await stack.createJob({ notes: 'first' });
  t.equal(job.spec.notes, 'first');
  await stack.request({ method: 'POST', url: `/v1/jobs/${job.id}/cancel` });
  const reply = await patch(job, { notes: 'second\nline' });
  t.match(reply.json<Job>(), { state: 'cancelled', spec: { notes: 'second\nline' } });
  t.equal((await patch(job, { notes: 'x'.repeat(4001) })).statusCode, 422);
  t.equal((await patch(job, { notes: '' })).json<Job>().spec.notes, '');
});

t.test('the requested ranks stay inside the new range', async (t) => {
  const job = await stack.createJob();
  const fewer = await patch(job, { resources: { ranks: { max: 1, preferred: 1 } } });
  t.equal(fewer.json<Job>().requested_ranks, 1);
  const execution = await run(job);
  const seen: number[] = [];
  const unwatch = await stack.store.watchControl(job.id, ({ requested_ranks }) => seen.push(requested_ranks));
  await patch(job, { resources: { ranks: { max: 4, preferred: 4 } } });
  t.equal(
    (await stack.store.renewLease(job.id, execution, 60_000)).requested_ranks,
    4,
    'its worker is notified',
  );
  await unwatch();
});

t.test('overrides may change from a future step on', async (t) => {
  const first = { step: 3, lr: 0.5 };
  const job = await stack.createJob({ train: { steps: 30, overrides: [first] } });
  const execution = await run(job);
  const received: string[] = [];
  const unwatch = await stack.store.watchControl(job.id, ({ overrides }) => received.push(overrides));
  await stack.store.report(job.id, execution, [], { ...job.progress, step: 10 });
  for (const overrides of [[], [{ step: 3, lr: 0.4 }], [first, { step: 9, lr: 0.1 }]]) {
    t.match(await problem(patch(job, { train: { overrides } })), {
      errors: [
        {
          pointer: '/train/overrides',
          code: 'override_step_completed',
          message: /below step 10.*"step":3,"lr":0.5/,
        },
      ],
    });
  }
  const overrides = [first, { step: 10, lr: 0.1 }, { step: 20, lr: null }];
  const changed = (await patch(job, { train: { overrides } })).json<Job>();
  t.strictSame(changed.spec.train.overrides, overrides);
  t.strictSame(parseSpec(await stack.objects.get(specKey(job.id))).spec, changed.spec, 'recover finds it');
  const events = await stack.store.readStream(job.id, null, 20, ['event']);
  t.match(events.at(-1), { type: 'job.updated', data: { changed: ['train'] } });
  const renewed = await stack.store.renewLease(job.id, execution, 60_000);
  t.not(renewed.overrides, received[0], 'its worker is notified');
  await unwatch();
  for (const [wrong, pointer] of [
    [[first, { step: 30, lr: 1 }], '/train/overrides/1/step'],
    [[first, { step: 20, lr: 1 }, { step: 12, lr: 1 }], '/train/overrides/2/step'],
    [[first, { step: 20, loss_scale: 2 }], '/train/overrides/1/loss_scale'],
  ] as const)
    t.match(await problem(patch(job, { train: { overrides: [...wrong] } })), { errors: [{ pointer }] });
});

t.test('a patch that breaks a rule names the field', async (t) => {
  const job = await stack.createJob();
  t.match(await problem(patch(job, { resources: { ranks: { min: 3 } } })), {
    status: 422,
    errors: [{ pointer: '/resources/ranks', code: 'ranks_out_of_order' }],
  });
  t.match(await problem(patch(job, { resources: { ranks: { max: 5, preferred: 5 } } })), {
    errors: [{ code: 'too_many_ranks' }, { code: 'too_many_ranks' }],
  });
  const sharded = await stack.createJob({ zero: { stage: 1 }, resources: { ranks: { max: 2 } } });
  t.match(await problem(patch(sharded, { resources: { ranks: { max: 4 } } })), {
    errors: [{ pointer: '/resources/ranks/max', code: 'lanes_out_of_range', suggestion: '2' }],
  });
  const names = (from: number) =>
    Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`name-${from + i}`, 'x']));
  await patch(job, { labels: names(0) });
  t.match(await problem(patch(job, { labels: names(40) })), {
    errors: [{ pointer: '/labels', code: 'wrong_length' }],
  });
  const unknown = stack.request({ method: 'PATCH', url: at(job), payload: { prioriy: 1 } });
  t.match(await problem(unknown), { errors: [{ code: 'unknown_field', suggestion: 'priority' }] });
  t.equal((await stack.request({ method: 'PATCH', url: at(job), payload: {} })).statusCode, 422);
});

t.test('only labels of a finished job can change', async (t) => {
  const job = await stack.createJob();
  await stack.request({ method: 'POST', url: `${at(job)}/cancel` });
  t.equal((await problem(patch(job, { priority: 1 }))).code, 'job_final');
  const labelled = await patch(job, { labels: { kept: 'yes' } });
  t.match(labelled.json<Job>(), { state: 'cancelled', labels: { kept: 'yes' } });
  t.match(parseDesired(await stack.objects.get(desiredKey(job.id))), { desired: 'cancel' });
});

t.test('concurrent patches all take effect', async (t) => {
  const job = await stack.createJob();
  const all = await Promise.all(
    Array.from({ length: 8 }, (_, i) => patch(job, { labels: { [`label-${i}`]: 'x' } })),
  );
  t.ok(all.every(({ statusCode }) => statusCode === 200));
  const now = await stack.store.getJob(job.id);
  t.equal(Object.keys(now?.labels ?? {}).length, 8);
  t.strictSame(parseSpec(await stack.objects.get(specKey(job.id))).spec, now?.spec);
});

t.test('If-Match compares versions only', async (t) => {
  const job = await stack.createJob();
  const etag = String((await stack.request({ url: at(job) })).headers.etag);
  const execution = await run(job);
  const post = (action: string, tag: string, payload?: object) =>
    stack.request({
      method: 'POST',
      url: `${at(job)}/${action}`,
      headers: { 'if-match': tag },
      ...(payload && { payload }),
    });
  for (const [action, payload] of [
    ['pause'],
    ['cancel'],
    ['checkpoint'],
    ['resume'],
    ['retry'],
    ['resize', { ranks: 3 }],
  ] as const) {
    const refused = await post(action, etag, payload);
    t.equal(refused.statusCode, 412, action);
    t.equal(refused.json<Problem>().code, 'version_mismatch');
  }
  t.equal((await patch(job, { priority: 1 }, { 'if-match': etag })).statusCode, 412);
  const gone = await stack.request({ method: 'DELETE', url: at(job), headers: { 'if-match': etag } });
  t.equal(gone.statusCode, 412);
  t.equal((await post('pause', 'nonsense')).statusCode, 412);

  const now = String((await stack.request({ url: at(job) })).headers.etag);
  await stack.store.report(job.id, execution, [], { ...job.progress, step: 1 });
  t.not((await stack.request({ url: at(job) })).headers.etag, now, 'progress changes the tag');
  t.equal((await post('checkpoint', now)).statusCode, 202, 'but not the version in it');
  t.equal((await post('resize', `"1-x", ${now}`, { ranks: 3 })).statusCode, 202, 'one of several');
  t.equal((await post('pause', now)).statusCode, 412, 'another number of ranks is another version');
  t.equal((await post('pause', '*')).statusCode, 202);
});

t.test('retry queues a failed job with a fresh error budget', async (t) => {
  const job = await stack.createJob({ retry: { max_errors: 1 } });
  const retry = () => stack.request({ method: 'POST', url: `${at(job)}/retry` });
  t.equal((await retry()).json<Problem>().code, 'invalid_state');
  const execution = await run(job);
  await stack.store.transition(job.id, execution, 'recovering', { patch: { error_count: 1 } });
  const failure = {
    category: 'hardware' as const,
    code: 'rank_lost',
    message: 'rank 1 is gone',
    rank: 1,
    step: 3,
    retryable: true,
  };
  await stack.store.finishJob(job.id, execution, 'failed', { reason: 'rank_lost', failure });
  const again = (await retry()).json<Job>();
  t.match(again, { state: 'queued', reason: 'user_request', attempt: 2, failure: null });
  t.match(parseDesired(await stack.objects.get(desiredKey(job.id))), { desired: 'run', epoch: 2 });
  t.equal((await retry()).json<Problem>().code, 'invalid_state', 'once');
  const claim = await stack.store.claimAttempt(job.id, 2, 'worker-b', 60_000);
  t.match(claim, { granted: true, job: { epoch: 2 }, error_count: 0 });
  await t.rejects(stack.store.finishJob(job.id, execution, 'failed'), { code: 'stale_epoch' });

  const { data } = (await stack.request({ url: `${at(job)}/attempts?limit=1` })).json<Page<Attempt>>();
  t.match(data, [{ epoch: 2, attempt: 2, workers: ['worker-b'], outcome: 'running', ended_at: null }]);
  const rest = await stack.request({ url: `${at(job)}/attempts?limit=1&after=2` });
  t.match(rest.json<Page<Attempt>>(), {
    data: [
      {
        epoch: 1,
        attempt: 1,
        workers: ['worker-a'],
        generations: [{ world_size: 2 }],
        outcome: 'failed',
        root_cause: failure,
      },
    ],
    next_cursor: null,
  });
});

t.test('retry refuses a job whose dataset is deleted', async (t) => {
  const job = await stack.createJob();
  const execution = await run(job);
  await stack.store.finishJob(job.id, execution, 'failed');
  const dataset = job.spec.data.dataset;
  t.equal((await stack.request({ method: 'DELETE', url: `/v1/datasets/${dataset}` })).statusCode, 204);
  const refused = await stack.request({ method: 'POST', url: `${at(job)}/retry` });
  t.equal(refused.statusCode, 404);
  t.equal(refused.json<Problem>().code, 'dataset_not_found');
  t.equal((await stack.store.getJob(job.id))?.state, 'failed');
});
