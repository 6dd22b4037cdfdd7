import t from 'tap';
import type { Job, Problem } from '../../../contracts/index.js';
import { putTestCheckpoint } from '../../../formats/testing/checkpoints.js';
import { putSpec } from '../../../state/index.js';
import { smallSpec, startTestStack } from '../../testing/stack.js';
import { checkpointOf, claimAndTrain } from '../../testing/training.js';

t.test('the document that created a job', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const dataset = await stack.upload('to be or not to be, that is the question. '.repeat(20));
  const given = { ...smallSpec(dataset.id), labels: { team: 'a' } };
  const create = async (url: string, payload: object) =>
    (await stack.request({ method: 'POST', url, payload })).json<Job>();
  const documentOf = async ({ id }: Pick<Job, 'id'>) =>
    (await stack.request({ url: `/v1/jobs/${id}/document` })).json<{ given: unknown }>().given;
  const job = await create('/v1/jobs', given);

  await t.test('is the one of the request, and lists do not carry it', async (t) => {
    t.strictSame(await documentOf(job), given);
    t.notOk('given' in job);
    const payload = { labels: { team: 'b' }, resources: { ranks: { max: 3 } } };
    await stack.request({ method: 'PATCH', url: `/v1/jobs/${job.id}`, payload });
    t.strictSame(await documentOf(job), given, 'a change leaves it as it is');
  });

  await t.test('of a fork is that of the source, changed by its overrides', async (t) => {
    const execution = await claimAndTrain(stack.store, job.id, { steps: 4 });
    const checkpoint = checkpointOf(job.id, 6);
    await putTestCheckpoint(stack.objects, checkpoint.prefix, { numels: [10], ranks: 2 }, checkpoint.id);
    await stack.store.commitCheckpoint(job.id, execution, checkpoint);
    const fork = await create(`/v1/jobs/${job.id}/fork`, { overrides: { train: { steps: 40 } } });
    t.match(await documentOf(fork), {
      data: { dataset: dataset.id },
      train: { steps: 40, sequence_length: job.spec.train.sequence_length },
      model: { preset: 'llama-tiny', init_from: { checkpoint: checkpoint.id, restore: 'continue' } },
    });
  });

  await t.test('survives a loss of Redis', async (t) => {
    await stack.loseRedis();
    t.strictSame(await documentOf(job), given);
  });

  await t.test('is null for a job without one, and unknown for no job', async (t) => {
    await putSpec(stack.objects, { job_id: job.id, spec: job.spec, idempotency: null });
    t.equal(await documentOf(job), null);
    const url = '/v1/jobs/job_01KAJX9B2M4P6R8T0V2X4Z6B8D/document';
    t.equal((await stack.request({ url })).json<Problem>().code, 'job_not_found');
  });
});
