/** A run as MLflow's own client reads it from MLflow's own server, which is away for a while. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { freePort } from '../../platform/testing/free-port.js';
import { testPython } from '../../platform/testing/python.js';
import { checkpointOf, metricOf } from '../testing/training.js';
import { claimed, setUp, stepsTo } from './testing/forwarding.js';
import { MLFLOW } from './testing/kinds.js';

const { program, missing } = testPython('mlflow');

/** Starts the server, and waits until it answers. */
async function startServer(t: Test, dir: string, port: number): Promise<ChildProcess> {
  const argv = ['mlflow', 'server', '--host', '127.0.0.1', '--port', String(port), '--workers', '1'];
  argv.push('--backend-store-uri', `sqlite:///${join(dir, 'mlflow.db')}`, '--default-artifact-root', dir);
  const code = `import sys; sys.argv = ${JSON.stringify(argv)}; from mlflow.cli import cli; cli()`;
  const child = spawn(program, ['-c', code], {
    cwd: dir,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  t.teardown(() => stopServer(child));
  const url = `http://127.0.0.1:${port}/api/2.0/mlflow/experiments/get?experiment_id=0`;
  while (
    !(await fetch(url).then(
      (answer) => answer.ok,
      () => false,
    ))
  ) {
    if (child.exitCode !== null) throw new Error(`mlflow server: ${errors.slice(-2000)}`);
    await delay(100);
  }
  return child;
}

/** With the workers of the server, which are in its group of processes. */
async function stopServer(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const exit = once(child, 'exit');
  process.kill(-child.pid, 'SIGKILL');
  await exit;
}

const READ = `
import json, sys
from mlflow.tracking import MlflowClient
client = MlflowClient(sys.argv[1])
experiment = client.get_experiment_by_name(sys.argv[2])
runs = client.search_runs([experiment.experiment_id]) if experiment else []
print(json.dumps([
    {
        "status": run.info.status,
        "start_time": run.info.start_time,
        "end_time": run.info.end_time,
        "params": run.data.params,
        "tags": run.data.tags,
        "metrics": {
            key: [[m.step, m.timestamp, repr(m.value)] for m in client.get_metric_history(run.info.run_id, key)]
            for key in run.data.metrics
        },
    }
    for run in runs
]))
`;

interface ReadRun {
  status: string;
  start_time: number;
  end_time: number | null;
  params: Record<string, string>;
  tags: Record<string, string>;
  metrics: Record<string, [step: number, timestamp: number, value: string][]>;
}

function readRuns(url: string, experiment: string): ReadRun[] {
  const { stdout, stderr } = spawnSync(program, ['-c', READ, url, experiment], { encoding: 'utf8' });
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout);
}

t.test('MLflow has the run', { skip: missing ?? false, timeout: 600_000 }, async (t) => {
  const dir = t.testdir();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const server = await startServer(t, dir, port);
  const { store, createJob, startForwarding } = await setUp(t, MLFLOW);
  const job = await createJob({ url, experiment: 'real', run_name: 'mine' });
  startForwarding();
  const until = async (condition: (runs: ReadRun[]) => boolean): Promise<ReadRun> => {
    for (;;) {
      const runs = readRuns(url, 'real');
      if (condition(runs)) return runs[0] as ReadRun;
      await delay(100);
    }
  };
  const first = await claimed(store, job.id);
  await first.train(1, 250);
  await until(([run]) => run?.tags['zerofleet.step'] === '250');

  // The job repeats steps and goes on, while the server is away.
  await stopServer(server);
  await store.releaseAttempt(job.id, first.execution, { to: 'queued', reason: 'test' });
  const second = await claimed(store, job.id, 2);
  await second.train(201, 300);
  const at = '2026-11-27T10:00:00.123Z';
  const odd = { ...metricOf(301), loss: null, at, eval_losses: { validation: 2.5, code: 1.5 } };
  await store.report(job.id, second.execution, [odd], { ...job.progress, step: 301 });
  const checkpoint = checkpointOf(job.id, 301);
  await store.commitCheckpoint(job.id, second.execution, checkpoint);
  const { updated_at } = await store.finishJob(job.id, second.execution, 'succeeded');

  await startServer(t, dir, port);
  const run = await until(([known]) => known?.status === 'FINISHED');
  t.equal(readRuns(url, 'real').length, 1);
  t.equal(run.start_time, Date.parse(job.created_at));
  t.equal(run.end_time, Date.parse(updated_at));
  const { loss = [], ...metrics } = run.metrics;
  const inOrder = loss.toSorted(([a], [b]) => a - b);
  t.same(
    inOrder.map(([step]) => step),
    stepsTo(300),
    'each step once, without one that is not finite',
  );
  for (const [step, , value] of inOrder) t.equal(Number(value), metricOf(step).loss);
  t.match(metrics, {
    eval_loss: [[301, Date.parse(at), '2.5']],
    'eval_loss.code': [[301, Date.parse(at), '1.5']],
  });
  t.equal(metrics['seconds/forward']?.length, 301);
  t.match(run.params, { 'train.optimizer.type': 'adamw', 'model.preset': 'llama-tiny' });
  t.match(run.tags, {
    'zerofleet.job_id': job.id,
    'zerofleet.state': 'succeeded',
    'zerofleet.non_finite': 'step 301: loss',
    'zerofleet.state_digest': checkpoint.state_digest,
    'mlflow.runName': 'mine',
  });
});
