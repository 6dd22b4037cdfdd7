/** Tests of retries and preemptions: neither changes the result of a job. */
import t from 'tap';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { Fleet, type FleetOptions } from '../../testing/fleet.js';

const HOUR_MS = 3_600_000;
const kills = (...steps: number[]) => steps.map((step) => ({ rank: 0, step, kind: 'kill' as const }));

async function fleet(
  t: { teardown(end: () => Promise<void>): void },
  options: FleetOptions = {},
): Promise<Fleet> {
  const started = await Fleet.start(options);
  t.teardown(() => started.close());
  return started;
}

/** Timing with backoffs of about `ms` that always release the slots. */
const releasedAfter = (ms: number) => ({
  restart_in_place_ms: 0,
  restart: { attempts: Number.MAX_SAFE_INTEGER, first_delay_ms: ms, max_delay_ms: ms },
});

t.test('other jobs use the slots of a job during its backoff', async (t) => {
  const f = await fleet(t, { ranks: { faults: kills(3) } });
  await f.agent(1, releasedAfter(HOUR_MS));
  const id = await f.submit({ steps: 10 });
  const queued = await f.untilState(id, 'queued').then(() => f.until(id, ({ attempt }) => attempt === 2));
  t.match(queued, { state: 'queued', reason: 'rank_lost', epoch: 1 });
  const { data } = (await f.events(id)).find(({ type }) => type === 'attempt.retry') ?? {};
  t.match(data, { code: 'rank_lost', errors: 1 });
  t.ok(Number(data?.delay_ms) >= HOUR_MS / 2 && Number(data?.delay_ms) <= HOUR_MS);
  t.match(await f.store.listPools(), [{ running: 0, waiting: 1 }]);
  t.match(await f.store.listWorkers(), [{ used_slots: 0 }]);
  const other = await f.submit({ steps: 5, priority: -100 });
  await f.untilState(other, 'succeeded');
  await f.store.requestPause(id);
  await f.store.resumeJob(id);
  t.equal(
    (await f.untilState(id, 'succeeded')).export?.state_digest,
    fakeStateDigest(1, 10),
    'a resumed job runs at once',
  );
});

t.test('a delayed job restarts by itself, and each of its errors counts', async (t) => {
  const f = await fleet(t, { ranks: { faults: kills(1, 2, 3) } });
  await f.agent(1, releasedAfter(50));
  const id = await f.submit({ steps: 10, every_steps: 100, max_errors: 3 });
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 10));
  t.match(job, { attempt: 4, epoch: 4 });
  const delays = (await f.events(id)).filter(({ type }) => type === 'attempt.retry');
  t.match(
    delays.map(({ data }) => data.errors),
    [1, 2, 3],
  );
});

t.test('the error budget persists between attempts', async (t) => {
  const f = await fleet(t, { ranks: { faults: kills(1, 2, 3) } });
  await f.agent(1, releasedAfter(50));
  const id = await f.submit({ steps: 10, every_steps: 100, max_errors: 2 });
  t.match(await f.untilState(id, 'failed'), { attempt: 3, failure: { code: 'rank_lost' } });
});

t.test('a crash of agent and Redis during a backoff loses nothing', async (t) => {
  const f = await fleet(t, { ranks: { faults: kills(7) } });
  const agent = await f.agentProcess(1, releasedAfter(2_000));
  const id = await f.submit({ steps: 10, every_steps: 5 });
  await f.until(id, ({ attempt }) => attempt === 2);
  agent.kill('SIGKILL');
  await f.redis.kill();
  await f.redis.start();
  await f.agent(1, releasedAfter(2_000));
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 10));
});

t.test('preemptions and errors have separate budgets', async (t) => {
  const f = await fleet(t, { ranks: { faults: kills(4), slow: { from: 11, ms: 100 } } });
  const id = await f.submit({ steps: 400, every_steps: 1000, max_errors: 1, preemptions: 1 });
  for (const preemption of [1, 2]) {
    const agent = await f.agent(1);
    await f.until(id, ({ state, progress }) => state === 'running' && progress.step > 10 * preemption);
    await agent.close();
  }
  const paused = await f.untilState(id, 'paused');
  t.equal(paused.reason, 'preemption_limit');
  t.equal(paused.latest_checkpoint?.step, paused.progress.step, 'at its checkpoint');
  const desired = JSON.parse(Buffer.from(await f.objects.get(`jobs/${id}/desired.json`)).toString());
  t.match(
    desired,
    { desired: 'pause', reason: 'preemption_limit' },
    'it stays paused if Redis loses its data',
  );
  await f.speedUp();
  await f.store.resumeJob(id);
  await f.agent(1);
  t.equal((await f.untilState(id, 'succeeded')).export?.state_digest, fakeStateDigest(1, 400));
});
