/** A run in MLflow from its first step to its end. */
import t from 'tap';
import type { Job } from '../../contracts/index.js';
import { checkpointOf, metricOf } from '../testing/training.js';
import { claimed, eventOf, setUp, stepsTo } from './testing/forwarding.js';
import { MLFLOW } from './testing/kinds.js';

t.test('a run from its first step to its end', async (t) => {
  const { store, tracker, createJob, startForwarding } = await setUp(t, MLFLOW);
  const { runs } = tracker.store;
  const job = await createJob({ run_name: 'first' }, { name: 'a job' });
  const unnamed = await createJob({ url: tracker.url }, { name: 'another' });
  const worker = await claimed(store, job.id);
  await worker.train(1, 1200);
  startForwarding();
  await tracker.until(() => runs.some((run) => run.tags.get('zerofleet.step') === '1200'));
  const [run] = runs;
  t.match(run, { run_name: 'first', status: 'RUNNING', start_time: Date.parse(job.created_at) });
  t.same([...tracker.store.experiments.keys()], ['tests']);
  t.same(tracker.store.seen()[0]?.steps, stepsTo(1200), 'in order, in batches that MLflow accepts');
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
  await tracker.until(() => run?.status === 'FINISHED');
  t.same(tracker.store.seen()[0]?.steps, stepsTo(1210));
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
  t.equal(runs.length, 1, 'a job that waits has no run');
  await store.finishJob(unnamed.id, null, 'cancelled');
  await tracker.until(() => runs[1]?.status === 'KILLED');
  t.equal(runs[1]?.run_name, 'another');
});
