import t from 'tap';
import type { DryRun, Job, Problem } from '../../../contracts/index.js';
import { gpuRankBytes } from '../../../job-document/index.js';
import { testGpu, testWorker } from '../../../state/testing/workers.js';
import { smallSpec, startTestStack, type TestStack } from '../../testing/stack.js';

/** Registers one worker with one GPU per slot. */
function announce(stack: TestStack, slots: number, memoryBytes: number): Promise<void> {
  const gpus = Array.from({ length: slots }, (_, i) => testGpu(`GPU-${i}`, { memory_bytes: memoryBytes }));
  return stack.store.announceWorker(testWorker('gpu', slots, { gpus }), 60_000);
}

t.test('a job that does not fit on the GPUs of its pool is refused with the numbers', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { id: dataset } = await stack.upload('some text '.repeat(500));
  const payload = { ...smallSpec(dataset), resources: { ranks: { min: 1, max: 2, preferred: 2 } } };
  const send = (url: string, key?: string, body: object = payload) =>
    stack.request({
      method: 'POST',
      url,
      payload: body,
      ...(key && { headers: { 'idempotency-key': key } }),
    });
  const before = await send('/v1/jobs', 'k1');
  t.equal(before.statusCode, 201, 'no worker reports its GPUs');
  const { spec } = before.json<Job>();
  const [one, two] = [gpuRankBytes(spec, 1), gpuRankBytes(spec, 2)];

  await announce(stack, 2, two - 1);
  for (const url of ['/v1/jobs', '/v1/jobs?dry_run=true']) {
    const refused = await send(url, 'k2');
    t.equal(refused.statusCode, 422, url);
    const { code, detail } = refused.json<Problem>();
    t.equal(code, 'insufficient_memory');
    t.match(
      detail,
      /^each of 2 ranks needs 1\.\d\d GiB of GPU memory .* would help: resources\.ranks\.max: 3 or more/,
    );
  }
  t.equal((await send('/v1/jobs', 'k1')).statusCode, 201, 'a repeated request gets the same answer');
  const more = { ...payload, resources: { ranks: { min: 1, max: 3, preferred: 2 } } };
  t.equal(
    (await send('/v1/jobs', undefined, more)).statusCode,
    201,
    'the suggested configuration is accepted',
  );

  await announce(stack, 2, one - 1);
  const job = (await send('/v1/jobs')).json<Job>();
  const act = async (action: string, body?: object) =>
    (await send(`/v1/jobs/${job.id}/${action}`, undefined, body ?? {})).json<Problem>().code;
  t.equal(await act('resize', { ranks: 1 }), 'insufficient_memory');
  t.equal(await act('resize', { ranks: 2 }), undefined);
  const patch = (ranks: object) =>
    stack.request({ method: 'PATCH', url: `/v1/jobs/${job.id}`, payload: { resources: { ranks } } });
  t.match((await patch({ min: 1, max: 1, preferred: 1 })).json(), { code: 'insufficient_memory' });
  t.equal((await patch({ min: 2 })).statusCode, 200);
  await act('pause');
  const back = (await stack.request({ method: 'GET', url: `/v1/jobs/${job.id}` })).json<Job>();
  t.equal(back.state, 'paused');

  const failing = (await send('/v1/jobs')).json<Job>();
  const claim = await stack.store.claimAttempt(failing.id, 1, 'gpu', 60_000);
  if (!claim.granted) throw new Error(claim.code);
  await stack.store.finishJob(failing.id, claim.execution, 'failed', { reason: 'insufficient_memory' });
  await announce(stack, 2, two - 1);
  const retry = () => stack.request({ method: 'POST', url: `/v1/jobs/${failing.id}/retry` });
  t.match((await retry()).json(), { code: 'insufficient_memory' });
  await stack.store.announceWorker(testWorker('cpu', 1), 60_000);
  t.equal((await retry()).statusCode, 202, 'a CPU job may use all memory of the machine');
});

t.test('an estimate for GPUs', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { id: dataset } = await stack.upload('some text '.repeat(500));
  const estimate = async (device?: string) => {
    const payload = { spec: smallSpec(dataset), world_sizes: [2], device };
    return (await stack.request({ method: 'POST', url: '/v1/estimate', payload })).json();
  };
  t.match(await estimate('cuda'), { device: 'cuda', data: [{ bytes: { packed_weights: 0 } }] });
  t.match(await estimate(), { device: 'cpu', data: [{ bytes: { packed_weights: Number } }] });
  t.match(await estimate('tpu'), { code: 'validation_failed' });
});

t.test('a micro-batch of auto is the largest one that fits on the GPUs of the pool', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { id: dataset } = await stack.upload('some text '.repeat(500));
  const small = smallSpec(dataset);
  const send = (url: string, microBatchSize: number | 'auto') =>
    stack.request({
      method: 'POST',
      url,
      payload: {
        ...small,
        train: { ...small.train, global_batch_size: 32, micro_batch_size: microBatchSize },
      },
    });
  const specOf = async (size: number | 'auto') => {
    const sent = await send('/v1/jobs', size);
    t.equal(sent.statusCode, 201, sent.body);
    return sent.json<Job>().spec;
  };
  t.equal((await specOf('auto')).train.micro_batch_size, 4, 'the default without a worker');
  const large = await specOf(8);
  const bytes = gpuRankBytes(large, large.resources.ranks.preferred);
  await announce(stack, 1, bytes);
  t.equal((await specOf('auto')).train.micro_batch_size, 8);
  await announce(stack, 1, bytes - 1);
  t.equal((await specOf('auto')).train.micro_batch_size, 4);
  const planned = (await send('/v1/jobs?dry_run=true', 'auto')).json<DryRun>();
  t.equal(planned.spec.train.micro_batch_size, 4, 'a dry run tells it');
});
