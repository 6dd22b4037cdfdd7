/** A run in W&B: what a job has there, and that it is what W&B's own client sends for the same metrics. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { JobMetric } from '../../contracts/index.js';
import { AddressPolicy } from '../../platform/outgoing/addresses.js';
import { resolveByDns } from '../../platform/outgoing/post.js';
import { projectRoot } from '../../platform/process/root.js';
import { checkpointOf, metricOf } from '../testing/training.js';
import type { KnownRun } from './run.js';
import { claimed, eventOf, setUp, stepsTo } from './testing/forwarding.js';
import { WANDB } from './testing/kinds.js';
import { startTestTracker } from './testing/server.js';
import { rowsOf, type StoredWandbRun, summaryOf, WandbStore } from './testing/wandb.js';
import { TrackerClient, type TrackerError } from './tracker-client.js';
import { Trackers } from './trackers.js';
import { type EndedJob, outcomeOf } from './values.js';
import { WandbClient } from './wandb-client.js';
import { WandbRun } from './wandb-run.js';

const POLICY = new AddressPolicy(['127.0.0.0/8']);
const golden = JSON.parse(
  readFileSync(join(projectRoot(), 'api', 'integrations', 'golden', 'wandb.json'), 'utf8'),
);
const given: { job: { created_at: string }; metrics: JobMetric[] } = JSON.parse(
  readFileSync(join(projectRoot(), 'formats', 'metric-files', 'golden', 'metrics.json'), 'utf8'),
);
const { config, tags, name, id, project } = golden.given;
const labels = { team: 'docs', nightly: '', 'a-label-that-is-too-long': 'x'.repeat(64) };
const job = {
  ...{ id, name, created_at: given.job.created_at, updated_at: given.job.created_at, state: 'succeeded' },
  latest_checkpoint: { id: golden.outcome['zerofleet.checkpoint_id'] },
  spec: { ...config, train: { ...config.train, overrides: [] }, labels, project: 'default' },
} as unknown as EndedJob;
/** Without the repeated step. */
const items = given.metrics.filter(({ seq }) => seq !== 9);

/** The code for W&B with a server of its own. */
async function direct(t: Test) {
  const tracker = await startTestTracker(new WandbStore());
  t.teardown(() => tracker.close());
  const server = new Map([['main', { url: tracker.url, token: golden.key }]]);
  const integration = { type: 'wandb' as const, server: 'main', project };
  const found = new Trackers({ mlflow: new Map(), wandb: server }, POLICY).find(integration, 'default');
  if (found === null) throw new Error('no server');
  const { signal } = new AbortController();
  const options = { policy: POLICY, resolve: resolveByDns, timeoutMs: 600_000, signal };
  const http = new TrackerClient(found, options);
  return { tracker, client: new WandbClient(http), run: new WandbRun(http, integration, 0) };
}

async function begun(run: WandbRun): Promise<KnownRun> {
  return { position: null, has_ended: false, ...(await run.begin(job)) };
}

async function logged(run: WandbRun, known: KnownRun, limit = run.maxValues): Promise<KnownRun> {
  let next = known;
  for await (const progress of run.log({ job, run: known, items, limit })) next = { ...next, ...progress };
  return next;
}

/** Lines as in the golden file, where `times` are the names of what a recording cannot repeat. */
function linesOf({ files }: StoredWandbRun, name: string) {
  return (files[name] ?? []).map((line) => {
    const fields = JSON.parse(line.replaceAll(/:(NaN|-?Infinity)/g, ':"$1"'));
    const { _timestamp, _runtime, _wandb, ...others } = fields;
    const times = Object.keys({ _runtime, _timestamp });
    return { ...others, times, ...(_wandb && { _wandb: Object.keys(_wandb) }) };
  });
}

t.test('the same as the client of W&B', async (t) => {
  const { tracker, run } = await direct(t);
  await run.finish(job, await logged(run, await begun(run)));
  const [stored] = tracker.store.runs as [StoredWandbRun];
  const { upsert, history, summary, end } = golden.finished;
  t.same([...new Set(tracker.authorizations)], [golden.authorization]);
  t.same(outcomeOf(job), golden.outcome);
  t.equal(stored.path, `somebody/${project}/${upsert.name}`);
  t.equal(stored.displayName, upsert.displayName);
  t.same(stored.tags, tags);
  const { _wandb, ...sections } = stored.config;
  const { _wandb: _, ...expected } = upsert.config;
  t.same(sections, expected);
  t.same(linesOf(stored, 'wandb-history.jsonl'), Object.values(history));
  t.same(linesOf(stored, 'wandb-summary.json'), [summary]);
  t.match({ complete: true, exitcode: stored.exitcode }, end);
  t.equal(rowsOf(stored)[0]?._runtime, 8.125);
  t.equal(rowsOf(stored)[0]?._timestamp, Date.parse(items[0]?.at ?? '') / 1000);

  for (const [state, outcome] of [
    ['failed', 'failed'],
    ['cancelled', 'interrupted'],
  ] as const) {
    await run.finish({ ...job, state }, await begun(run));
    t.match({ exitcode: stored.exitcode }, { exitcode: golden.ends[outcome].exitcode }, state);
  }
});

t.test('a run is continued after its last line', async (t) => {
  const { tracker, run } = await direct(t);
  await logged(run, await begun(run));
  const [at] = Object.keys(golden.resumed.history);
  const again = await begun(run);
  t.match(again, { step: items.at(-1)?.step, own: { lines: Number(at) } });
  t.match(again.own, { summary: { eval_loss: 5.25, 'eval_loss/code': null } });
  const [stored] = tracker.store.runs as [StoredWandbRun];
  stored.displayName = 'changed by hand';
  stored.tags = ['mine'];
  await begun(run);
  t.match(stored, { displayName: 'changed by hand', tags: ['mine'] });
  tracker.store.defaultEntity = 'another';
  t.match(await run.reopen(job, { ...again, has_ended: true }), { lines: Number(at) });
  t.equal(tracker.store.runs.length, 1);
});

t.test('requests that are repeated have no further effect, whatever their size', async (t) => {
  const { tracker, run } = await direct(t);
  const known = await begun(run);
  const all = await logged(run, known);
  const [stored] = tracker.store.runs as [StoredWandbRun];
  const before = structuredClone(stored);
  const { requests } = tracker;
  t.same(await logged(run, known, 50), all);
  t.same(stored, before);
  t.ok(tracker.requests - requests > 1);
});

t.test('refusals are final as for the client of W&B', async (t) => {
  const { tracker, client } = await direct(t);
  await client.upsert({ name: 'r', project: 'p' });
  /** An operator may change the key or its rights. */
  const patient = ['401', '403'];
  const isRepeated = async (status: number, send: () => Promise<unknown>) => {
    tracker.fault = { request: '', response: status };
    const error = await send().then(
      () => null,
      (thrown: TrackerError) => thrown,
    );
    t.match(error, { code: 'refused', answer: { status } });
    return !error?.isPermanent;
  };
  const { UpsertBucket, file_stream } = golden.repeated as Record<string, Record<string, boolean>>;
  for (const [status, repeated] of Object.entries(UpsertBucket ?? {}))
    t.equal(
      await isRepeated(Number(status), () => client.upsert({ name: 'r', project: 'p' })),
      repeated || patient.includes(status),
      `upsert ${status}`,
    );
  for (const [status, repeated] of Object.entries(file_stream ?? {}))
    t.equal(
      await isRepeated(Number(status), () => client.stream('somebody/p/r', {})),
      repeated || patient.includes(status),
      `stream ${status}`,
    );
});

t.test('a job in W&B from its first step to its end', async (t) => {
  const { store, tracker, createJob, startForwarding } = await setUp(t, WANDB);
  const { runs } = tracker.store;
  const job = await createJob(
    { run_name: 'first', entity: 'team' },
    { name: 'a job', labels: { team: 'docs' } },
  );
  const worker = await claimed(store, job.id);
  await worker.train(1, 1200);
  startForwarding({ timing: { beat_ms: 1 } });
  await tracker.until(() => tracker.store.seen()[0]?.step === 1200);
  const [run] = runs as [StoredWandbRun];
  t.match(run, { path: `team/tests/${job.id}`, displayName: 'first', tags: ['team=docs'] });
  t.same(tracker.store.seen()[0]?.steps, stepsTo(1200), 'in order');
  const { loss, seconds } = metricOf(7);
  t.match(rowsOf(run)[6], { _step: 7, loss, 'seconds/forward': seconds.forward });
  t.match(run.config, {
    train: { value: { steps: 1_000_000, optimizer: { type: 'adamw', betas: [0.9, 0.95] } } },
    model: { value: { config: { hidden_size: 256 } } },
    zero: { value: { stage: 2 } },
    zerofleet: { value: { job_id: job.id, project: 'default' } },
  });
  t.notMatch(run.config, { train: { value: { overrides: [] } } });
  await tracker.until(() => run.beats > 2);
  t.equal(run.exitcode, null, 'a run without news goes on');

  await worker.train(1201, 1210);
  const checkpoint = { ...checkpointOf(job.id, 1210), state_digest: 'd'.repeat(32) };
  await store.commitCheckpoint(job.id, worker.execution, checkpoint);
  await store.finishJob(job.id, worker.execution, 'succeeded', { reason: 'completed' });
  await tracker.until(() => run.exitcode === 0);
  t.same(tracker.store.seen()[0]?.steps, stepsTo(1210));
  t.match(summaryOf(run), {
    loss: metricOf(1210).loss,
    'zerofleet.state': 'succeeded',
    'zerofleet.checkpoint_id': checkpoint.id,
    'zerofleet.state_digest': checkpoint.state_digest,
  });
  t.match(await eventOf(store, job.id, 'integration.started'), {
    data: { integration: 0, type: 'wandb', run_id: run.path, url: `${tracker.url}team/tests/runs/${job.id}` },
  });
});

t.test('the page of a run', async (t) => {
  const pageOf = (url: string) => {
    const http = { tracker: { url, authorization: null } } as TrackerClient;
    return new WandbClient(http).pageOf('team/a project/job_1');
  };
  t.equal(pageOf('https://api.wandb.ai'), 'https://wandb.ai/team/a%20project/runs/job_1');
  t.equal(pageOf('https://api.wandb.example.com/'), 'https://wandb.example.com/team/a%20project/runs/job_1');
  t.equal(pageOf('https://api.example.com'), 'https://app.example.com/team/a%20project/runs/job_1');
  t.equal(pageOf('https://wandb.example.com'), 'https://wandb.example.com/team/a%20project/runs/job_1');
});
