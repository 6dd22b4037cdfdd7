/** Metrics of jobs arrive in each kind of tracker once and in order, whatever happens to it and to the API. */
import t, { type Test } from 'tap';
import { claimed, eventOf, setUp, startApi, stepsTo } from './testing/forwarding.js';
import { KINDS, type Kind, TOKEN } from './testing/kinds.js';
import type { TestTracker } from './testing/server.js';

const runOf = ({ store }: TestTracker) => store.seen()[0];

type Api = Awaited<ReturnType<typeof startApi>>;

/** The cases of all trackers share an API, which takes longer to start than they do. */
function eachKind(name: string, run: (t: Test, kind: Kind, api: Api) => Promise<void>): void {
  t.test(name, async (t) => {
    const api = await startApi(t);
    for (const kind of KINDS) await t.test(kind.integration.type, (t) => run(t, kind, api));
  });
}

eachKind(
  'repeated steps are not logged twice, and a retried job continues in its run',
  async (t, kind, api) => {
    const { store, tracker, createJob, startForwarding } = await setUp(t, kind, api);
    const { id } = await createJob();
    startForwarding();
    const first = await claimed(store, id);
    await first.train(1, 30);
    await tracker.until(() => runOf(tracker)?.step === 30);
    await store.releaseAttempt(id, first.execution, { to: 'queued', reason: 'test' });
    const second = await claimed(store, id, 2);
    await second.train(21, 40);
    await store.finishJob(id, second.execution, 'failed', { reason: 'test' });
    await tracker.until(() => runOf(tracker)?.status === 'FAILED');
    await store.retryJob(id);
    const third = await claimed(store, id, 3);
    await third.train(36, 50);
    await tracker.until(() => runOf(tracker)?.step === 50);
    t.equal(runOf(tracker)?.status, 'RUNNING');
    await store.finishJob(id, third.execution, 'succeeded');
    await tracker.until(() => runOf(tracker)?.status === 'FINISHED');
    t.same(runOf(tracker)?.steps, stepsTo(50));
    t.equal(tracker.store.seen().length, 1);
  },
);

eachKind('a server that is away delays nothing but the metrics', async (t, kind, api) => {
  const { store, tracker, createJob, startForwarding } = await setUp(t, kind, api);
  const { id } = await createJob();
  startForwarding();
  const worker = await claimed(store, id);
  for (const response of [503, 'lost', 429] as const) {
    const { faults } = tracker;
    tracker.fault = { request: '', response };
    await worker.train(1 + 10 * faults, 1 + 10 * faults);
    await tracker.until(() => tracker.faults > faults + 2);
  }
  tracker.fault = null;
  await store.finishJob(id, worker.execution, 'succeeded');
  t.match(await store.getJob(id), { state: 'succeeded' }, 'whatever the tracker does');
  await tracker.until(() => tracker.store.seen().some(({ status }) => status === 'FINISHED'));
  t.equal(tracker.store.seen().length, 1, 'created once, although the first answer was lost');
  t.same(new Set(runOf(tracker)?.steps).size, runOf(tracker)?.steps?.length);
});

eachKind('a request whose answer is lost is not repeated', async (t, kind, api) => {
  const { store, tracker, createJob, startForwarding } = await setUp(t, kind, api);
  const { id } = await createJob();
  const worker = await claimed(store, id);
  tracker.fault = { request: kind.requests.create, response: 'lost' };
  await worker.train(1, 5);
  startForwarding();
  await tracker.until(() => tracker.faults > 0);
  tracker.fault = null;
  await tracker.until(() => runOf(tracker)?.step === 5);
  tracker.fault = { request: kind.requests.log, response: 'lost' };
  await worker.train(6, 9);
  await tracker.until(() => tracker.faults > 1);
  tracker.fault = null;
  await worker.train(10, 12);
  await store.finishJob(id, worker.execution, 'succeeded');
  await tracker.until(() => runOf(tracker)?.status === 'FINISHED');
  t.same(runOf(tracker)?.steps, stepsTo(12));
  t.equal(tracker.store.seen().length, 1);
});

eachKind('another process continues the run of one that died', async (t, kind, api) => {
  const { store, tracker, createJob, startForwarding } = await setUp(t, kind, api);
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
  await tracker.until(() => runOf(tracker)?.step === 20);
  await dead.close();
  startForwarding();
  startForwarding();
  await worker.train(21, 25);
  await store.finishJob(id, worker.execution, 'succeeded');
  await tracker.until(() => runOf(tracker)?.status === 'FINISHED');
  t.same(runOf(tracker)?.steps, stepsTo(25));
  t.equal(tracker.store.seen().length, 1);
});

eachKind('a loss of Redis begins no second run', async (t, kind, api) => {
  const { store, tracker, createJob, startForwarding, loseRedis } = await setUp(t, kind, api);
  const job = await createJob();
  const forwarder = startForwarding();
  const worker = await claimed(store, job.id);
  await worker.train(1, 10);
  await tracker.until(() => runOf(tracker)?.step === 10);
  await forwarder.close();
  await loseRedis();
  const again = await claimed(store, job.id);
  await again.train(1, 15);
  startForwarding();
  await store.finishJob(job.id, again.execution, 'succeeded');
  await tracker.until(() => runOf(tracker)?.status === 'FINISHED');
  t.same(runOf(tracker)?.steps, stepsTo(15));
  t.equal(tracker.store.seen().length, 1);
});

eachKind('an integration is given up with an event', async (t, kind, api) => {
  const { store, tracker, createJob, startForwarding } = await setUp(t, kind, api);
  const failed = async (id: string) => {
    const worker = await claimed(store, id);
    await worker.train(1, 3);
    const { data } = await eventOf(store, id, 'integration.failed');
    await store.finishJob(id, worker.execution, 'succeeded');
    return data;
  };
  const strict = startForwarding({ timing: { give_up_ms: 1 } });
  tracker.fault = { request: kind.requests.first, response: 503 };
  const lasting = await failed((await createJob()).id);
  t.match(lasting, {
    integration: 0,
    type: kind.integration.type,
    error: 'refused',
    status: 503,
    error_code: 'INTERNAL_ERROR',
  });
  t.match(await failed((await createJob({ server: 'gone' })).id), { error: 'server_not_configured' });
  // A server that takes everything but the end of the run.
  tracker.fault = { request: kind.requests.end, response: 503 };
  const { id: ending } = await createJob();
  await store.finishJob(ending, null, 'cancelled');
  t.match((await eventOf(store, ending, 'integration.failed')).data, { error: 'refused', status: 503 });
  await strict.close();

  startForwarding({ resolve: async () => ['10.0.0.1'] });
  tracker.fault = { request: kind.requests.create, response: 400 };
  t.match(await failed((await createJob()).id), { error: 'refused', status: 400 });
  tracker.fault = null;
  const { id } = await createJob({ server: 'named' });
  t.match(await failed(id), { error: 'address_refused', status: null }, 'a name with a private address');
});

eachKind('a slow server does not delay another', async (t, kind, api) => {
  const { store, tracker, other, createJob, startForwarding } = await setUp(t, kind, api);
  other.fault = { request: '', response: 'hang' };
  startForwarding();
  for (let i = 0; i < 17; i += 1) {
    // Only MLflow's servers are named by any URL, of which a host has as many as somebody likes.
    const isMlflow = kind.integration.type === 'mlflow';
    const { id } = await createJob(isMlflow ? { url: `${other.url}${i}` } : { server: 'other' });
    await (await claimed(store, id)).train(1, 1);
  }
  await other.until(() => other.faults > 0);
  const { id } = await createJob();
  await (await claimed(store, id)).train(1, 3);
  await tracker.until(() => runOf(tracker)?.step === 3);
  t.ok(other.faults <= 8, 'half of the requests at most, whatever URLs they have');
});

eachKind('credentials are sent to their server, and are nowhere else', async (t, kind, api) => {
  const { store, tracker, other, createJob, startForwarding, request } = await setUp(t, kind, api);
  const { id } = await createJob();
  const lines: string[] = [];
  const note = (...args: unknown[]) => void lines.push(JSON.stringify(args));
  const log = { info: note, warn: note, error: note } as never;
  startForwarding({ log });
  tracker.fault = { request: kind.requests.log, response: 503 };
  const worker = await claimed(store, id);
  await worker.train(1, 3);
  await tracker.until(() => tracker.faults > 1);
  tracker.fault = { request: kind.requests.log, response: 400 };
  await eventOf(store, id, 'integration.failed');
  t.same([...new Set(tracker.authorizations)], [kind.authorization]);
  other.fault = tracker.fault;
  const open = await createJob({ server: 'other' });
  await (await claimed(store, open.id)).train(1, 3);
  await eventOf(store, open.id, 'integration.failed');
  t.same([...new Set(other.authorizations)], [undefined], 'another server gets none');
  for (const path of ['', '/events', '/logs', '/attempts'])
    t.notMatch((await request({ url: `/v1/jobs/${id}${path}` })).body, TOKEN, path);
  t.ok(lines.length > 0);
  const secrets = [TOKEN, kind.authorization];
  for (const secret of secrets) t.notOk(lines.some((line) => line.includes(secret)));
});
