/** Metrics of jobs arrive in MLflow once and in order, whatever happens to it and to the API. */
import t from 'tap';
import type { Job } from '../../contracts/index.js';
import { checkpointOf, metricOf } from '../testing/training.js';
import { claimed, eventOf, setUp, stepsTo, TOKEN } from './testing/forwarding.js';
import type { StoredRun } from './testing/mlflow.js';

const stepsOf = (run: StoredRun | undefined, key = 'loss') =>
  run?.metrics.filter((metric) => metric.key === key).map(({ step }) => step);

t.test('a run from its first step to its end', async (t) => {
  const { store, mlflow, createJob, startForwarding } = await setUp(t);
  const job = await createJob({ run_name: 'first' }, { name: 'a job' });
  const unnamed = await createJob({ url: mlflow.url }, { name: 'another' });
  const worker = await claimed(store, job.id);
  await worker.train(1, 1200);
  startForwarding();
  await mlflow.until(() => mlflow.runs.some((run) => run.tags.get('zerofleet.step') === '1200'));
  const [run] = mlflow.runs;
  t.match(run, { run_name: 'first', status: 'RUNNING', start_time: Date.parse(job.created_at) });
  t.same([...mlflow.experiments.keys()], ['tests']);
  t.same(stepsOf(run), stepsTo(1200), 'in order, in batches that MLflow accepts');
  const { loss, seconds } = metricOf(7);
  const of7 = run?.metrics.filter(({ step }) => step === 7);
  t.match(
    of7?.find(({ key }) => key === 'loss'),
    { value: loss },
  );
  t.match(
    of7?.find(({ key }) => key === 'seconds/forward'),
    { value: seconds.forward },
  );
  const params = Object.fromEntries(run?.params ?? []);
  t.match(params, {
    'train.steps': '1000000',
    'train.optimizer.type': 'adamw',
    'train.optimizer.betas': '[0.9,0.95]',
    'model.config.hidden_size': '256',
    'zero.stage': '2',
  });
  t.notOk('train.overrides' in params);

  await worker.train(1201, 1210);
  const checkpoint = { ...checkpointOf(job.id, 1210), state_digest: 'd'.repeat(32) };
  await store.commitCheckpoint(job.id, worker.execution, checkpoint);
  await store.finishJob(job.id, worker.execution, 'succeeded', { reason: 'completed' });
  await mlflow.until(() => run?.status === 'FINISHED');
  t.same(stepsOf(run), stepsTo(1210));
  const { updated_at } = (await store.getJob(job.id)) as Job;
  t.equal(run?.end_time, Date.parse(updated_at));
  t.match(Object.fromEntries(run?.tags ?? []), {
    'zerofleet.job_id': job.id,
    'zerofleet.project': 'default',
    'zerofleet.state': 'succeeded',
    'zerofleet.checkpoint_id': checkpoint.id,
    'zerofleet.state_digest': checkpoint.state_digest,
  });
  t.match(await eventOf(store, job.id, 'integration.started'), {
    data: { integration: 0, type: 'mlflow', run_id: run?.run_id, experiment_id: '1' },
  });
  t.equal(mlflow.runs.length, 1, 'a job that waits has no run');
  await store.finishJob(unnamed.id, null, 'cancelled');
  await mlflow.until(() => mlflow.runs[1]?.status === 'KILLED');
  t.equal(mlflow.runs[1]?.run_name, 'another');
});

t.test('repeated steps are not logged twice, and a retried job continues in its run', async (t) => {
  const { store, mlflow, createJob, startForwarding } = await setUp(t);
  const { id } = await createJob();
  startForwarding();
  const first = await claimed(store, id);
  await first.train(1, 30);
  await mlflow.until(() => mlflow.runs[0]?.tags.get('zerofleet.step') === '30');
  await store.releaseAttempt(id, first.execution, { to: 'queued', reason: 'test' });
  const second = await claimed(store, id, 2);
  await second.train(21, 40);
  await store.finishJob(id, second.execution, 'failed', { reason: 'test' });
  await mlflow.until(() => mlflow.runs[0]?.status === 'FAILED');
  await store.retryJob(id);
  const third = await claimed(store, id, 3);
  await third.train(36, 50);
  await mlflow.until(() => mlflow.runs[0]?.tags.get('zerofleet.step') === '50');
  t.equal(mlflow.runs[0]?.status, 'RUNNING');
  await store.finishJob(id, third.execution, 'succeeded');
  await mlflow.until(() => mlflow.runs[0]?.status === 'FINISHED');
  t.same(stepsOf(mlflow.runs[0]), stepsTo(50));
  t.equal(mlflow.runs.length, 1);
});

t.test('a server that is away delays nothing but the metrics', async (t) => {
  const { store, mlflow, createJob, startForwarding } = await setUp(t);
  const { id } = await createJob();
  startForwarding();
  const worker = await claimed(store, id);
  for (const what of [503, 'lost', 429] as const) {
    const { faults } = mlflow;
    mlflow.fault = { path: '', what };
    await worker.train(1 + 10 * faults, 1 + 10 * faults);
    await mlflow.until(() => mlflow.faults > faults + 2);
  }
  mlflow.fault = null;
  await store.finishJob(id, worker.execution, 'succeeded');
  t.match(await store.getJob(id), { state: 'succeeded' }, 'whatever MLflow does');
  await mlflow.until(() => mlflow.runs.some(({ status }) => status === 'FINISHED'));
  t.equal(mlflow.runs.length, 1, 'created once, although the first answer was lost');
  t.same(new Set(stepsOf(mlflow.runs[0])).size, stepsOf(mlflow.runs[0])?.length);
});

t.test('a request whose answer is lost is not repeated', async (t) => {
  const { store, mlflow, createJob, startForwarding } = await setUp(t);
  const { id } = await createJob();
  const worker = await claimed(store, id);
  mlflow.fault = { path: 'runs/create', what: 'lost' };
  await worker.train(1, 5);
  startForwarding();
  await mlflow.until(() => mlflow.faults > 0);
  mlflow.fault = null;
  await mlflow.until(() => mlflow.runs[0]?.tags.get('zerofleet.step') === '5');
  mlflow.fault = { path: 'runs/log-batch', what: 'lost' };
  await worker.train(6, 9);
  await mlflow.until(() => mlflow.faults > 1);
  mlflow.fault = null;
  await worker.train(10, 12);
  await store.finishJob(id, worker.execution, 'succeeded');
  await mlflow.until(() => mlflow.runs[0]?.status === 'FINISHED');
  t.same(stepsOf(mlflow.runs[0]), stepsTo(12));
  t.equal(mlflow.runs.length, 1);
});

t.test('another process continues the run of one that died', async (t) => {
  const { store, mlflow, createJob, startForwarding } = await setUp(t);
  const { id } = await createJob();
  const worker = await claimed(store, id);
  await worker.train(1, 20);
  // It has one claim, logs a batch, and saves nothing after that.
  let claims = 0;
  const dying: typeof store = {
    ...store,
    claimForwards: async (terms) => (claims++ === 0 ? store.claimForwards(terms) : []),
    saveForward: async (claim, save) => {
      const state = save.state as { run: { step: number } };
      if (state.run.step > 0) throw new Error('the process died');
      return store.saveForward(claim, save);
    },
  };
  const dead = startForwarding({ store: dying, timing: { lease_ms: 1 } });
  await mlflow.until(() => mlflow.runs[0]?.tags.get('zerofleet.step') === '20');
  await dead.close();
  startForwarding();
  startForwarding();
  await worker.train(21, 25);
  await store.finishJob(id, worker.execution, 'succeeded');
  await mlflow.until(() => mlflow.runs[0]?.status === 'FINISHED');
  t.same(stepsOf(mlflow.runs[0]), stepsTo(25));
  t.equal(mlflow.runs.length, 1);
});

t.test('a loss of Redis begins no second run', async (t) => {
  const { store, mlflow, createJob, startForwarding, loseRedis } = await setUp(t);
  const job = await createJob();
  const forwarder = startForwarding();
  const worker = await claimed(store, job.id);
  await worker.train(1, 10);
  await mlflow.until(() => mlflow.runs[0]?.tags.get('zerofleet.step') === '10');
  await forwarder.close();
  await loseRedis();
  const again = await claimed(store, job.id);
  await again.train(1, 15);
  startForwarding();
  await store.finishJob(job.id, again.execution, 'succeeded');
  await mlflow.until(() => mlflow.runs[0]?.status === 'FINISHED');
  t.same(stepsOf(mlflow.runs[0]), stepsTo(15));
  t.equal(mlflow.runs.length, 1);
});

t.test('an integration is given up with an event', async (t) => {
  const { store, mlflow, createJob, startForwarding } = await setUp(t);
  const failed = async (id: string) => {
    const worker = await claimed(store, id);
    await worker.train(1, 3);
    const { data } = await eventOf(store, id, 'integration.failed');
    await store.finishJob(id, worker.execution, 'succeeded');
    return data;
  };
  const strict = startForwarding({ timing: { give_up_ms: 1 } });
  mlflow.fault = { path: 'get-by-name', what: 503 };
  const lasting = await failed((await createJob()).id);
  t.match(lasting, {
    integration: 0,
    type: 'mlflow',
    error: 'refused',
    status: 503,
    error_code: 'INTERNAL_ERROR',
  });
  t.match(await failed((await createJob({ server: 'gone' })).id), { error: 'server_not_configured' });
  // A server that takes everything but the end of the run.
  mlflow.fault = { path: 'runs/update', what: 503 };
  const { id: ending } = await createJob();
  await store.finishJob(ending, null, 'cancelled');
  t.match((await eventOf(store, ending, 'integration.failed')).data, { error: 'refused', status: 503 });
  await strict.close();

  startForwarding({ resolve: async () => ['10.0.0.1'] });
  mlflow.fault = { path: 'runs/create', what: 400 };
  t.match(await failed((await createJob()).id), { error: 'refused', status: 400 });
  mlflow.fault = null;
  const { id } = await createJob({ url: 'https://mlflow.example.com' });
  t.match(await failed(id), { error: 'address_refused', status: null }, 'a name with a private address');
});

t.test('a slow server does not delay another', async (t) => {
  const { store, mlflow, createJob, startForwarding } = await setUp(t);
  const slow = await setUp(t);
  slow.mlflow.fault = { path: '', what: 'hang' };
  startForwarding();
  for (let i = 0; i < 10; i += 1) {
    const { id } = await createJob({ url: slow.mlflow.url });
    await (await claimed(store, id)).train(1, 1);
  }
  await slow.mlflow.until(() => slow.mlflow.faults > 0);
  const { id } = await createJob();
  await (await claimed(store, id)).train(1, 3);
  await mlflow.until(() => mlflow.runs[0]?.tags.get('zerofleet.step') === '3');
  t.ok(slow.mlflow.faults <= 8, 'half of the requests at most');
});

t.test('credentials are sent to their server, and are nowhere else', async (t) => {
  const { store, mlflow, createJob, startForwarding, request } = await setUp(t);
  const { id } = await createJob();
  const lines: string[] = [];
  const note = (...args: unknown[]) => void lines.push(JSON.stringify(args));
  const log = { info: note, warn: note, error: note } as never;
  startForwarding({ log });
  mlflow.fault = { path: 'log-batch', what: 503 };
  const worker = await claimed(store, id);
  await worker.train(1, 3);
  await mlflow.until(() => mlflow.faults > 1);
  mlflow.fault = { path: 'log-batch', what: 400 };
  await eventOf(store, id, 'integration.failed');
  t.same([...new Set(mlflow.authorizations)], [`Bearer ${TOKEN}`]);
  const { length } = mlflow.authorizations;
  const open = await createJob({ url: mlflow.url });
  await (await claimed(store, open.id)).train(1, 3);
  await eventOf(store, open.id, 'integration.failed');
  t.same([...new Set(mlflow.authorizations.slice(length))], [undefined], 'an address of a user gets none');
  for (const path of ['', '/events', '/logs', '/attempts'])
    t.notMatch((await request({ url: `/v1/jobs/${id}${path}` })).body, TOKEN, path);
  t.ok(lines.length > 0);
  t.notMatch(lines.join('\n'), TOKEN);
});
