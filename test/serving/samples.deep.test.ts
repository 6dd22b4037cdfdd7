/** Checkpoints answer the prompts of a document while the job trains, alike on any number of ranks. */
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { JobSpec } from '../../contracts/index.js';
import { until } from '../../platform/testing/waiting.js';
import { startStack } from '../support/stack.js';
import { tinyJob } from '../support/zero-specs.js';

const { client } = await startStack(t);
const { id: dataset } = await client.datasets.create('text', Buffer.from('The fleet answers. '.repeat(300)));

/** Trains and returns the answers by step, and the digest of the end. */
async function answersOf(ranks: number, samples?: NonNullable<JobSpec['checkpoint']>['samples']) {
  const spec = tinyJob({ name: `samples ${ranks}`, dataset, ranks });
  const checkpoint = { ...spec.checkpoint, every_steps: 20, ...(samples && { samples }) };
  const { id } = await client.jobs.create({ ...spec, checkpoint });
  const job = await client.jobs.until(id, () => false);
  t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
  const digest = job.latest_checkpoint?.state_digest;
  if (samples === undefined) return { digest, answers: [] };
  await until(async () => (await collect(client.jobs.samples(id))).length === 2);
  const answers = await collect(client.jobs.samples(id));
  return { digest, answers: answers.map(({ step, answers, error }) => ({ step, answers, error })) };
}

t.test('the answers and the training have the same bits on one and three ranks', async (t) => {
  const samples = { prompts: [{ prompt: 'The fleet' }, { prompt: 'a' }], max_tokens: 12, temperature: 0.8 };
  const { digest, answers } = await answersOf(1, samples);
  t.match(answers, [
    { step: 20, answers: [/./s, /./s], error: null },
    { step: 40, answers: [/./s, /./s], error: null },
  ]);
  t.strictSame(await answersOf(3, samples), { digest, answers });
  t.strictSame((await answersOf(2)).digest, digest, 'prompts do not change the training');
});
