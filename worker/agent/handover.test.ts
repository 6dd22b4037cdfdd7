import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { queueJobId, queueName, REDIS_PREFIX } from '../../contracts/index.js';
import { parseManifest } from '../../formats/checkpoint/manifest.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { fakeStateDigest } from '../testing/fake-state.js';
import { Fleet, type FleetOptions, SHORT_SILENCES } from '../testing/fleet.js';

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

async function fleet(
  t: { teardown(end: () => Promise<void>): void },
  options: FleetOptions = {},
): Promise<Fleet> {
  const started = await Fleet.start(options);
  t.teardown(() => started.close());
  return started;
}

t.test('a cancelled job stops its ranks and keeps its checkpoints', async (t) => {
  const f = await fleet(t, { ranks: { step_ms: 20 } });
  await f.agent();
  const id = await f.submit({ steps: 10_000, every_steps: 5, ranks: 2 });
  await f.until(id, (job) => job.latest_checkpoint !== null);
  await f.store.requestCancel(id);
  const job = await f.untilState(id, 'cancelled');
  t.match(job, { export: null, failure: null, world_size: null });
  t.ok((await f.store.listCheckpoints(id)).data.length > 0);
});

t.test(
  'a queue entry that loses its lock repeatedly does not disturb the attempt: the lease decides',
  async (t) => {
    const f = await fleet(t, { ranks: { slow: { from: 1, ms: 100 } } });
    const agent = await f.agent();
    const redis = await connectRedis(f.redis.url, 'commands');
    t.teardown(() => disconnectRedis(redis));
    const id = await f.submit({ steps: 60, every_steps: 5, ranks: 2, max_errors: 0 });
    await f.until(id, (job) => job.progress.step >= 3);
    // An outage removes the lock of the entry, so that it counts as stalled.
    const lock = `${REDIS_PREFIX}:${queueName(agent.id)}:${queueJobId({ job_id: id, attempt: 1 })}:lock`;
    t.equal(await redis.del(lock), 1, 'the entry had a lock');
    for (let times = 0; times < 3; times++) {
      await delay(700);
      await redis.del(lock);
    }
    await f.speedUp();
    const job = await f.untilState(id, 'succeeded');
    t.equal(job.export?.state_digest, fakeStateDigest(1, 60));
    t.match(job, { epoch: 1, attempt: 1 });
  },
);

t.test('a draining agent returns the job to the queue with all progress saved', async (t) => {
  const f = await fleet(t, { ranks: { slow: { from: 6, ms: 300 } } });
  const first = await f.agent();
  const id = await f.submit({ steps: 60, every_steps: 1000, ranks: 2, max_errors: 0 });
  await f.until(id, (job) => job.progress.step >= 5);
  await first.close();
  await f.speedUp();
  const handed = await f.store.getJob(id);
  t.match(handed, { state: 'queued', reason: 'worker_draining', attempt: 2 });
  t.equal(handed?.latest_checkpoint?.step, handed?.progress.step);
  await f.agent();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 60));
  t.strictSame(await f.steps(id), upTo(60));
});

t.test('an agent that is killed is replaced by another one, and its ranks end', async (t) => {
  const f = await fleet(t, { ranks: { slow: { from: 11, ms: 300 } } });
  const first = await f.agentProcess(4, SHORT_SILENCES);
  const id = await f.submit({ steps: 80, every_steps: 5, ranks: 2, max_errors: 0 });
  const before = await f.until(id, (job) => (job.latest_checkpoint?.step ?? 0) >= 10);
  first.kill('SIGKILL');
  await f.speedUp();
  await f.agent();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 80));
  t.ok(job.epoch > before.epoch);
  t.ok(job.state_history.some(({ reason }) => reason === 'heartbeat_lost'));
});

t.test('an agent that was stopped and resumes writes nothing more, and its ranks end', async (t) => {
  const f = await fleet(t, { ranks: { slow: { from: 11, ms: 200 } } });
  const first = await f.agentProcess(4, SHORT_SILENCES);
  const id = await f.submit({ steps: 150, every_steps: 5, keep: { last: 100 }, ranks: 2, max_errors: 0 });
  await f.until(id, (job) => (job.latest_checkpoint?.step ?? 0) >= 10);
  first.kill('SIGSTOP');
  const resumed = await f.agent().then(() => f.until(id, (job) => job.epoch > 1 && job.progress.step > 20));
  first.kill('SIGCONT');
  await f.speedUp();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 150));
  const epochs = (await f.store.readStream(id, null, 10_000)).flatMap((entry) =>
    entry.kind === 'metric' ? [entry.epoch] : [],
  );
  t.strictSame([...epochs].sort(), epochs, 'no metric of the old epoch follows one of the new');
  const checkpoints = (await f.store.listCheckpoints(id, { limit: 100 })).data;
  const line = new Set<string>();
  let nextId: string | null = checkpoints[0]!.id;
  while (nextId !== null) {
    const one = checkpoints.find((checkpoint) => checkpoint.id === nextId);
    if (!one) break;
    line.add(one.id);
    const { parent }: { parent: string | null } = parseManifest(
      await f.objects.get(`${one.prefix}/MANIFEST.json`),
    );
    nextId = parent;
  }
  t.equal(line.size, checkpoints.length, 'the parent of every checkpoint is the one before');
  t.ok(resumed.epoch >= 2);
});
