/** Changes of tensors that an agent takes from the queue. */
import { createHash } from 'node:crypto';
import { type ConnectionOptions, Queue, QueueEvents } from 'bullmq';
import t from 'tap';
import {
  type Checkpoint,
  type EditPayload,
  type EditReply,
  exportQueueName,
  REDIS_PREFIX,
  type TensorState,
} from '../../../contracts/index.js';
import { editValuesKey } from '../../../formats/checkpoint/layout.js';
import { verifyShards } from '../../../formats/checkpoint/verify.js';
import { redisOptions } from '../../../platform/redis/connect.js';
import { readManifest } from '../../shared/read-manifest.js';
import { advance, bytesOf, digestOf, type FakeState, fakeState, valuesOf } from '../../testing/fake-state.js';
import { Fleet } from '../../testing/fleet.js';

const STEPS = 40;
const TENSOR = 'lm_head.weight';
const PARAM = 2;
const TRAINING = { optimizer: { type: 'adamw' as const }, param_groups: [] };

const digest = (state: FakeState) => digestOf(state, TRAINING, { rank: 0, world_size: 1 });

t.test('a tensor of a paused job is changed', async (t) => {
  const fleet = await Fleet.start({ ranks: { slow: { from: 6, ms: 300 } } });
  t.teardown(() => fleet.close());
  await fleet.agent();
  const { store, objects } = fleet;
  const bullmq = {
    connection: redisOptions(fleet.redis.url, 'queue') as ConnectionOptions,
    prefix: REDIS_PREFIX,
  };
  const queue = new Queue<EditPayload, EditReply>(exportQueueName('default'), bullmq);
  const events = new QueueEvents(exportQueueName('default'), bullmq);
  t.teardown(() => Promise.all([queue.close(), events.close()]));

  const payloadOf = async (
    { id, job_id, prefix }: Checkpoint,
    tensorState: TensorState,
    values: Uint8Array,
  ): Promise<EditPayload> => {
    const sha256 = createHash('sha256').update(values).digest('hex');
    const editId = createHash('sha256').update(`${id}${tensorState}${sha256}`).digest('hex').slice(0, 32);
    const key = editValuesKey(job_id, editId);
    await objects.put(key, values);
    return {
      edit_id: editId,
      job_id,
      checkpoint: { id, prefix },
      tensor: TENSOR,
      tensor_state: tensorState,
      values: { key, sha256 },
    };
  };
  const replyTo = async (payload: EditPayload) => {
    const entry = await queue.add('export' as never, payload as never);
    return entry.waitUntilFinished(events, 120_000) as Promise<EditReply>;
  };
  const edit = async (
    checkpoint: Checkpoint,
    state: TensorState,
    values: Uint8Array,
  ): Promise<Checkpoint> => {
    const reply = await replyTo(await payloadOf(checkpoint, state, values));
    if (reply.error !== null) throw new Error(reply.error.message);
    const made = (await store.findCheckpoint(reply.checkpoint_id))?.checkpoint;
    if (!made) throw new Error(`no checkpoint ${reply.checkpoint_id}`);
    t.equal((await store.getJob(checkpoint.job_id))?.latest_checkpoint?.id, made.id);
    await verifyShards(objects, made.prefix, await readManifest(objects, made.prefix));
    return made;
  };

  const id = await fleet.submit({ steps: STEPS, every_steps: 4, ranks: 3, keep: { last: 9 } });
  await fleet.until(id, (job) => job.progress.step >= 6 && job.latest_checkpoint !== null);
  const [running] = (await store.listCheckpoints(id)).data as [Checkpoint];
  const state = fakeState(1, running.step);
  const refused = await replyTo(
    await payloadOf(running, 'master', bytesOf(valuesOf(state, 'master', PARAM))),
  );
  t.match(refused, { error: { code: /^(invalid_state|checkpoint_not_newest)$/ } }, 'a running job');
  await store.requestPause(id);
  const { epoch } = await fleet.untilState(id, 'paused');
  const [old, older] = (await store.listCheckpoints(id)).data as [Checkpoint, Checkpoint];
  const at = fakeState(1, old.step);

  await t.test('the same values give the same digest', async (t) => {
    const same = await edit(old, 'exp_avg', bytesOf(valuesOf(at, 'exp_avg', PARAM)));
    t.equal(same.state_digest, old.state_digest);
    t.equal(same.step, old.step);
    t.match(same.made_from, { checkpoint_id: old.id, tensor: TENSOR, tensor_state: 'exp_avg' });
    const [before, after] = [
      await readManifest(objects, old.prefix),
      await readManifest(objects, same.prefix),
    ];
    t.strictSame(after.shards, before.shards);
    t.equal(after.parent, old.id);
  });

  await t.test(
    'other values give the digest that ranks compute, and training continues with them',
    async (t) => {
      const [newest] = (await store.listCheckpoints(id)).data as [Checkpoint];
      const values = valuesOf(at, 'master', PARAM);
      for (const i of values.keys()) values[i] = Math.fround(i / 7 - 3);
      const payload = await payloadOf(newest, 'master', bytesOf(values));
      const changed = await edit(newest, 'master', bytesOf(values));
      t.equal(changed.state_digest, digest(at));
      t.not(changed.state_digest, old.state_digest);
      t.strictSame(await replyTo(payload), { error: null, checkpoint_id: changed.id }, 'a repetition');
      await fleet.speedUp();
      await store.resumeJob(id, { ranks: 2 });
      await fleet.untilState(id, 'succeeded');
      for (let step = old.step; step < STEPS; step++) advance(at, step + 1);
      const [last] = (await store.listCheckpoints(id)).data;
      t.equal(last?.step, STEPS);
      t.equal(last?.state_digest, digest(at));
      t.equal(
        (await store.findCheckpoint(old.id))?.checkpoint?.state_digest,
        old.state_digest,
        'the old one stays',
      );
      t.equal((await store.getJob(id))?.epoch, epoch + 1);
    },
  );

  await t.test('what cannot be changed is refused', async (t) => {
    const values = bytesOf(valuesOf(at, 'master', PARAM));
    t.match(await replyTo(await payloadOf(older, 'master', values)), {
      error: { code: 'checkpoint_not_newest' },
    });
    const [last] = (await store.listCheckpoints(id)).data as [Checkpoint];
    const payload = await payloadOf(last, 'master', values);
    const other = { ...payload, values: { ...payload.values, sha256: '0'.repeat(64) } };
    t.match(await replyTo(other), { error: { code: 'tensor_invalid', message: /damaged: send them again/ } });
    await objects.delete([payload.values.key]);
    t.match(await replyTo(payload), { error: { code: 'checkpoint_not_found', message: /send it again/ } });
    t.equal((await store.getJob(id))?.latest_checkpoint?.id, last.id);
  });
});
