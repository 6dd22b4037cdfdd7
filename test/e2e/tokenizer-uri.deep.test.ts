/**
 * A tokenizer in a bucket tokenizes a job's data independently of later changes in the bucket, and is part of the
 * export and the samples.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { JobSpec } from '../../contracts/index.js';
import { TINY_TOKENIZER } from '../../formats/testing/models.js';
import { S3StandIn } from '../../platform/testing/s3-stand-in.js';
import { smallJob } from '../support/specs.js';
import { startStack } from '../support/stack.js';

const TOKENIZER = Buffer.from(JSON.stringify(TINY_TOKENIZER));
const LETTERS = Array.from({ length: 4000 }, (_, index) =>
  String.fromCharCode(97 + ((index * index) % 23)),
).join('');

t.test('a tokenizer in a bucket', async (t) => {
  const bucket = new S3StandIn();
  bucket.objects.set('words/tokenizer.json', TOKENIZER);
  bucket.objects.set('letters.txt', Buffer.from(LETTERS));
  const door = await bucket.open();
  t.teardown(() => door.close());
  const { client, data_dir } = await startStack(t, {
    env: {
      ZEROFLEET_DATASET_BUCKETS: 'zoo',
      ZEROFLEET_S3_ENDPOINT: door.endpoint,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_REGION: 'eu-central-1',
    },
  });
  const specOf = (ranks: number, data: JobSpec['data']): JobSpec => ({
    ...smallJob({ name: `${ranks} ranks`, dataset: '', steps: 8, ranks, every_steps: 4 }),
    data,
  });
  const run = async (spec: JobSpec) => {
    const { id } = await client.jobs.create(spec);
    const job = await client.jobs.until(id, () => false);
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    return job;
  };

  const data = { uri: 's3://zoo/letters.txt', tokenizer: 's3://zoo/words/tokenizer.json' };
  const first = await run(specOf(2, data));
  const { dataset, tokenizer } = first.spec.data;
  const [prepared] = (await collect(client.jobs.events(first.id))).filter(
    ({ type }) => type === 'data.prepared',
  );
  t.match(prepared?.data, { max_token: 18 }, 'letters became tokens, not bytes');
  const exported = join(data_dir, 'objects', first.export?.prefix ?? '', 'tokenizer.json');
  t.same(readFileSync(exported), TOKENIZER);

  bucket.objects.clear();
  const again = await run(specOf(3, { dataset, tokenizer: tokenizer as string }));
  t.equal(again.export?.state_digest, first.export?.state_digest, 'the job is exact without the bucket');
  const bytes = await run(specOf(1, { dataset, tokenizer: 'bytes' }));
  t.not(bytes.export?.state_digest, first.export?.state_digest);

  const [checkpoint] = await collect(client.jobs.checkpoints(first.id));
  const sample = await client.samples.create(checkpoint?.id ?? '', {
    prompt: 'abc',
    max_tokens: 12,
    temperature: 0,
  });
  t.match(sample.choices[0]?.text, /^( [a-z])+$/, 'tokens of the tokenizer, with nothing that joins them');
  const fork = await client.jobs.fork(first.id, { overrides: { train: { steps: 10 } } });
  t.equal(fork.spec.data.tokenizer, tokenizer);
  t.equal((await client.jobs.until(fork.id, () => false)).state, 'succeeded');
});
