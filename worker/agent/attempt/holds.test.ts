/** Tests of retention against readers of a running job's checkpoints. */
import { type ConnectionOptions, Queue, QueueEvents } from 'bullmq';
import t from 'tap';
import {
  type Checkpoint,
  type ExportPayload,
  type ExportReply,
  exportQueueName,
  REDIS_PREFIX,
} from '../../../contracts/index.js';
import { checkpointExportPrefix, exportName } from '../../../formats/checkpoint/layout.js';
import { redisOptions } from '../../../platform/redis/connect.js';
import { fakeInitializedDigest } from '../../testing/fake-state.js';
import { Fleet } from '../../testing/fleet.js';

/** Starts a job that keeps training, keeps one checkpoint and uses all slots. */
async function training(t: { teardown(end: () => Promise<void>): void }) {
  const fleet = await Fleet.start({ ranks: { step_ms: 10 } });
  t.teardown(() => fleet.close());
  await fleet.agent(1);
  const id = await fleet.submit({ steps: 100_000, every_steps: 5, keep: { last: 1 } });
  await fleet.until(id, ({ latest_checkpoint }) => latest_checkpoint !== null);
  /** Holds the newest checkpoint before retention removes it. */
  const hold = async (holder: string): Promise<Checkpoint> => {
    for (;;) {
      const [checkpoint] = (await fleet.store.listCheckpoints(id)).data;
      if (checkpoint && (await fleet.store.holdCheckpoint(checkpoint.id, holder))) return checkpoint;
    }
  };
  const after = (step: number) =>
    fleet.until(id, ({ latest_checkpoint }) => (latest_checkpoint?.step ?? 0) > step);
  const removed = async (checkpoint: Checkpoint) => {
    for (;;) {
      const { data } = await fleet.store.listCheckpoints(id, { limit: 100 });
      if (!data.some((other) => other.id === checkpoint.id)) return;
    }
  };
  return { fleet, id, hold, after, removed };
}

t.test('a queued job finds its initial checkpoint, however long the other job trains', async (t) => {
  const { fleet, id, hold, after, removed } = await training(t);
  const from = await hold('test');
  const initFrom = { checkpoint: from.id, job: id, prefix: from.prefix, restore: 'full' as const };
  const forked = await fleet.submit({ steps: 20, every_steps: 10, init_from: initFrom });
  await fleet.store.letGoCheckpoint(from.id, 'test');
  await after(from.step + 15);
  // Retention removes the others, the second newest shortly after the newest was saved.
  let kept: Checkpoint[];
  do kept = (await fleet.store.listCheckpoints(id, { limit: 100 })).data;
  while (kept.length !== 2);
  t.equal(kept[1]?.id, from.id, 'retention keeps only the held checkpoint');
  await fleet.agent(1);
  const job = await fleet.untilState(forked, 'succeeded');
  t.equal(job.export?.state_digest, fakeInitializedDigest(1, from.step, 'full', 20));
  await removed(from);
});

t.test('an export finds its checkpoint and releases it', async (t) => {
  const { fleet, id, hold, after, removed } = await training(t);
  const kind = { format: 'safetensors', dtype: 'fp32', weights: 'trained', tensorboard: false } as const;
  const holder = (checkpoint: Checkpoint) => exportName({ checkpoint: checkpoint.id, ...kind });
  const from = await hold('test');
  // The API does this when an export is requested.
  await fleet.store.holdCheckpoint(from.id, holder(from));
  await fleet.store.letGoCheckpoint(from.id, 'test');
  await after(from.step + 10);
  const bullmq = {
    connection: redisOptions(fleet.redis.url, 'queue') as ConnectionOptions,
    prefix: REDIS_PREFIX,
  };
  const queue = new Queue<ExportPayload, ExportReply>(exportQueueName('default'), bullmq);
  const events = new QueueEvents(exportQueueName('default'), bullmq);
  t.teardown(() => Promise.all([queue.close(), events.close()]));
  const prefix = checkpointExportPrefix(id, from.step, { checkpoint: from.id, ...kind });
  const checkpoint = { id: from.id, prefix: from.prefix, step: from.step };
  const entry = await queue.add('export', { job_id: id, checkpoint, ...kind, prefix });
  t.same(await entry.waitUntilFinished(events, 60_000), { error: null });
  await removed(from);
});
