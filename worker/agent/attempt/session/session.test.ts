/** Tests of sessions: agents, ranks with a fake core, and a log of calls. */
import t, { type Test } from 'tap';
import { REDIS_PREFIX } from '../../../../contracts/index.js';
import { callResultKey } from '../../../../formats/checkpoint/layout.js';
import { connectRedis, disconnectRedis } from '../../../../platform/redis/connect.js';
import { until } from '../../../../platform/testing/waiting.js';
import { fakeStateDigest } from '../../../testing/fake-state.js';
import { Fleet, type FleetOptions } from '../../../testing/fleet.js';
import { FINISH, PASS, SAVE, UPDATE, updates } from '../../../testing/session-calls.js';
import { TestSession } from './testing/test-session.js';

async function fleet(t: Test, options: FleetOptions = {}): Promise<Fleet> {
  const started = await Fleet.start(options);
  t.teardown(() => started.close());
  return started;
}

const running = (ranks: number) => (job: { state: string; world_size: number | null }) =>
  job.state === 'running' && job.world_size === ranks;

t.test('a session runs its calls, saves, and succeeds with finish', async (t) => {
  const f = await fleet(t);
  await f.agent(2);
  const session = await TestSession.create(f, { ranks: 2 });
  const [pass, update, , second, saved] = await session.run(PASS, UPDATE, PASS, UPDATE, SAVE);
  t.strictSame(pass, { loss: 2, num_targets: 2, log_probs: [[-1, -1, null]], metrics: {} });
  const digest = fakeStateDigest(1, 1);
  t.strictSame(update, { step: 1, grad_norm: 1, lr: 0.5, finite: true, state_digest: digest });
  t.match(second, { step: 2, state_digest: fakeStateDigest(1, 2) });
  const { data } = await f.store.listCheckpoints(session.id);
  t.strictSame(saved, { checkpoint: data[0]?.id, step: 2 });
  const [finished] = await session.run(FINISH);
  t.strictSame(finished, saved, 'the state was saved already');
  const job = await f.untilState(session.id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 2));
  t.match(job.progress, { step: 2, tokens: 6, total_steps: null, loss: 1, eta_seconds: null });
  t.match(await f.metrics(session.id), [
    { step: 1, loss: 1, lr: 0.5, tokens: 3 },
    { step: 2, tokens: 6 },
  ]);
  await f.untilNoRanks();
});

t.test('killed ranks, a resize and a pause change no result', async (t) => {
  const faults = [
    { rank: 1, step: 3, kind: 'kill' as const },
    { rank: 0, step: 5, kind: 'exit' as const },
  ];
  const f = await fleet(t, { ranks: { faults } });
  await f.agent(3);
  const session = await TestSession.create(f, { ranks: 2, every_steps: 2 });
  await session.run(...updates(5), PASS);
  await f.store.requestResize(session.id, 3);
  await f.until(session.id, running(3));
  await session.run(UPDATE, PASS);
  await f.store.requestPause(session.id);
  await f.untilState(session.id, 'paused');
  const pending = session.append(UPDATE);
  await f.store.resumeJob(session.id, { ranks: 1 });
  await session.result(await pending);
  await session.append(FINISH);
  const job = await f.untilState(session.id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 7));
  const results = await session.results();
  const digests = results.flatMap((result) => ('state_digest' in result ? [result.state_digest] : []));
  t.strictSame(
    digests,
    [1, 2, 3, 4, 5, 6, 7].map((step) => fakeStateDigest(1, step)),
  );
  t.ok(results.slice(0, -1).every((result) => !('error' in result)));
  const lost = (await f.events(session.id)).filter(({ type }) => type === 'rank.lost');
  t.equal(lost.length, 2);
});

t.test('a session on two agents', async (t) => {
  const f = await fleet(t);
  await f.agent(1);
  await f.agent(2);
  const session = await TestSession.create(f, { ranks: 3 });
  await session.run(...updates(2));
  const [loaded] = await session.run(await session.save());
  t.match(loaded, { step: 3, state_digest: fakeStateDigest(1, 2) });
  await session.append(FINISH);
  await f.untilState(session.id, 'succeeded');
  t.match(await f.store.getJob(session.id), { lost_work_seconds: 0 });
});

t.test('a draining agent hands its session over, and a cancelled one ends', async (t) => {
  const f = await fleet(t);
  const first = await f.agent(1);
  const session = await TestSession.create(f);
  await session.run(...updates(2), PASS);
  await f.agent(1);
  await first.close();
  const [update] = await session.run(UPDATE);
  t.match(update, { step: 3, state_digest: fakeStateDigest(1, 3) });
  t.match(await f.store.getJob(session.id), { attempt: 2, lost_work_seconds: 0 });
  await f.store.requestCancel(session.id);
  await f.untilState(session.id, 'cancelled');
  await f.untilNoRanks();
});

t.test('load_state restores a checkpoint, or is answered with its error', async (t) => {
  const f = await fleet(t);
  await f.agent(2);
  const session = await TestSession.create(f, { ranks: 2 });
  await session.run(PASS, UPDATE);
  const load = await session.save();
  await session.run(...updates(2), PASS);
  const unknown = { ...load, checkpoint: 'ckpt_01J00000000000000000000000' };
  const [loaded, dropped, missing, deleted] = await session.run(load, UPDATE, unknown, {
    ...load,
    prefix: `${load.prefix}0`,
  });
  t.strictSame(loaded, { step: 4, state_digest: fakeStateDigest(1, 1) });
  t.match(dropped, { error: { code: 'no_gradients' } }, 'pending gradients are dropped');
  t.match(
    [missing, deleted],
    [{ error: { code: 'checkpoint_not_found' } }, { error: { code: 'checkpoint_not_found' } }],
  );
  const [cold] = await session.run({ ...load, optimizer: false });
  t.match(cold, { step: 5 });
  t.not(cold && 'state_digest' in cold && cold.state_digest, fakeStateDigest(1, 1), 'the optimizer is cold');

  await session.run(SAVE);
  const shard = (await f.keys(load.prefix)).find((key) => key.includes('shard')) ?? '';
  const bytes = Buffer.from(await f.objects.get(shard));
  bytes[bytes.length - 1]! ^= 1;
  await f.objects.put(shard, bytes);
  const [damaged, after] = await session.run(load, PASS);
  t.match(damaged, { error: { code: 'shard_corrupt' } });
  t.match(after, { loss: 2 });
});

t.test('an idle session is paused with its state, and continues after the next call', async (t) => {
  const f = await fleet(t);
  await f.agent(1);
  const session = await TestSession.create(f, { train: { session: { idle_seconds: 1 } } });
  await session.run(...updates(2), PASS);
  const paused = await f.untilState(session.id, 'paused');
  t.match(paused, { reason: 'idle', latest_checkpoint: { step: 2 }, lost_work_seconds: 0 });
  await session.append(UPDATE);
  t.match((await session.results()).at(-1), { step: 3, state_digest: fakeStateDigest(1, 3) });
});

t.test('a call that gives another state than before fails the session', async (t) => {
  const f = await fleet(t, { ranks: { faults: [{ rank: 0, step: 3, kind: 'kill' }] } });
  await f.agent(1);
  const session = await TestSession.create(f);
  await session.run(...updates(2));
  const changed = { step: 2, grad_norm: 1, lr: 0.5, finite: true, state_digest: '0'.repeat(32) };
  await f.objects.put(callResultKey(session.id, 4), Buffer.from(JSON.stringify(changed)));
  await session.append(...updates(1));
  const { failure } = await f.untilState(session.id, 'failed');
  t.match(failure, { code: 'replay_differs', message: /^call 4 / });
  await t.rejects(session.result(7), /call 7 has no result, and the job is failed: .*replay_differs/);
});

t.test('save_state and finish save a step whose periodic save failed', async (t) => {
  const f = await fleet(t);
  await f.agent(2);
  const session = await TestSession.create(f, { ranks: 2, every_steps: 1 });
  const failures = async () =>
    (await f.events(session.id)).filter(({ type }) => type === 'checkpoint.failed').length;
  for (const last of [SAVE, FINISH]) {
    const before = await failures();
    const empty = await f.fillDisk();
    await session.run(PASS, UPDATE);
    await until(async () => (await failures()) > before);
    await empty();
    const [saved] = await session.run(last);
    t.match(saved, { checkpoint: /^ckpt_/, step: last === SAVE ? 1 : 2 });
  }
  await f.untilState(session.id, 'succeeded');
});

t.test('load_state of a checkpoint without one of its shards is answered with the error', async (t) => {
  const f = await fleet(t);
  await f.agent(2);
  const session = await TestSession.create(f, { ranks: 2 });
  await session.run(PASS, UPDATE);
  const load = await session.save();
  await session.run(PASS, UPDATE, SAVE);
  const shard = (await f.keys(load.prefix)).find((key) => key.includes('shard')) ?? '';
  const bytes = await f.objects.get(shard);
  await f.objects.delete([shard]);
  const [missing] = await session.run(load);
  t.match(missing, { error: { code: 'object_not_found' } });
  await f.objects.put(shard, bytes.subarray(0, bytes.length / 2));
  const [short, , update] = await session.run(load, PASS, UPDATE);
  t.match(short, { error: { code: 'invalid_range' } });
  t.match(update, { step: 3, state_digest: fakeStateDigest(1, 3) }, 'the session goes on with its state');
  t.match(await f.store.getJob(session.id), { attempt: 1 });
});

t.test('a load that is run again ends as before', async (t) => {
  const f = await fleet(t, { ranks: { faults: [{ rank: 0, step: 5, kind: 'kill' }] } });
  await f.agent(1);
  const session = await TestSession.create(f);
  await session.run(PASS, UPDATE);
  const load = await session.save();
  const manifest = `${load.prefix}/MANIFEST.json`;
  const bytes = await f.objects.get(manifest);
  await f.objects.delete([manifest]);
  const [refused] = await session.run(load);
  t.match(refused, { error: { code: 'checkpoint_not_found' } });
  await f.objects.put(manifest, bytes);
  const results = await session.run(...updates(2), load, ...updates(1));
  t.match(results[4], { step: 4, state_digest: fakeStateDigest(1, 1) });
  t.match(results[6], { step: 5 });
});

t.test('a requested checkpoint is saved between calls, or is the one that exists', async (t) => {
  const f = await fleet(t);
  await f.agent(1);
  const session = await TestSession.create(f);
  await session.run(...updates(1));
  await f.store.requestCheckpoint(session.id);
  await f.until(session.id, ({ latest_checkpoint }) => latest_checkpoint?.step === 1);
  await f.store.requestCheckpoint(session.id);
  const redis = await connectRedis(f.redis.url, 'commands');
  const key = `${REDIS_PREFIX}:job:${session.id}`;
  const isAnswered = async () => {
    const [requested, completed] = await redis.hmget(key, 'save_requested', 'save_completed');
    return requested === completed;
  };
  await until(isAnswered);
  await disconnectRedis(redis);
  t.equal((await f.store.listCheckpoints(session.id)).data.length, 1);
});
