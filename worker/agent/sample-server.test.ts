import { type ConnectionOptions, Queue, QueueEvents } from 'bullmq';
import t from 'tap';
import {
  type Checkpoint,
  REDIS_PREFIX,
  type SamplePayload,
  type SampleReply,
  sampleQueueName,
} from '../../contracts/index.js';
import { redisOptions } from '../../platform/redis/connect.js';
import { Fleet } from '../testing/fleet.js';

t.test('samples are drawn from the weights of a checkpoint', async (t) => {
  const fleet = await Fleet.start({ ranks: { step_ms: 5 } });
  t.teardown(() => fleet.close());
  const worker = await fleet.agent();
  const bullmq = {
    connection: redisOptions(fleet.redis.url, 'queue') as ConnectionOptions,
    prefix: REDIS_PREFIX,
  };
  const queue = new Queue<SamplePayload, SampleReply>(sampleQueueName('default'), bullmq);
  const events = new QueueEvents(sampleQueueName('default'), bullmq);
  t.teardown(() => Promise.all([queue.close(), events.close()]));

  const request = { prompt: 'to', max_tokens: 64, temperature: 0, top_k: 0, top_p: 1, seed: 1 };
  const sample = async ({ id, prefix, job_id }: Checkpoint, wait_ms = 30_000) => {
    const payload = { job_id, checkpoint: { id, prefix }, request, expires_at: Date.now() + wait_ms };
    const entry = await queue.add('sample', payload);
    return entry.waitUntilFinished(events, 60_000);
  };
  const trained = async (ranks: number) => {
    const id = await fleet.submit({ steps: 12, every_steps: 6, ranks });
    await fleet.untilState(id, 'succeeded');
    return (await fleet.store.listCheckpoints(id)).data as [Checkpoint, Checkpoint];
  };
  const [last, before] = await trained(2);
  const [alone] = await trained(1);

  const text = await sample(last);
  t.match(text, { ok: true, sample: { num_tokens: 64, completion: /^[0-9a-f]{64}$/ } });
  t.same(await sample(alone), text, 'the ranks that saved it make no difference');
  t.notSame(await sample(before), text, 'other weights, another text');

  t.test('what cannot be done is a reply', async (t) => {
    t.match(await sample(last, -1), { ok: false, error: { code: 'sample_timeout' } });
    const lost = { ...last, job_id: 'job_00000000000000000000000000' };
    t.match(await sample(lost), { ok: false, error: { code: 'checkpoint_not_found' } });
    const shards = (await fleet.keys(last.prefix)).filter((key) => key.endsWith('.safetensors'));
    await fleet.objects.delete(shards.slice(0, 1));
    t.match(await sample(last), { ok: false, error: { code: 'object_not_found' } });
  });

  t.test('the agent closes with it', async (t) => {
    await worker.close();
    const { prefix, id, job_id } = alone;
    await queue.add('sample', {
      job_id,
      checkpoint: { id, prefix },
      request,
      expires_at: Date.now() + 1_000,
    });
    t.equal(await queue.getWaitingCount(), 1, 'nobody takes requests any more');
  });
});
