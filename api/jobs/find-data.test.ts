/** Jobs over several datasets. */
import t from 'tap';
import type { DataPreview, DryRun, Job, Problem } from '../../contracts/index.js';
import { putTestCheckpoint } from '../../formats/testing/checkpoints.js';
import { startWithData as start, TEXT, URI } from '../testing/data-bucket.js';
import { checkpointOf, claimAndTrain } from '../testing/training.js';

process.env.AWS_ACCESS_KEY_ID = 'test';
process.env.AWS_SECRET_ACCESS_KEY = 'test';

const UNKNOWN = 'ds_00000000000000000000000000';
const LENGTH = 16;

t.test('a mixture', async (t) => {
  const { bucket, stack, post, datasets } = await start(t);
  const other = 's3://texts/open/other.txt';
  bucket.objects.set('open/other.txt', Buffer.from('another text '.repeat(40)));
  const { upload } = stack;
  const own = await upload('the third text '.repeat(30));
  const mixed = (mixture: object[], more: object = {}) =>
    post({ mixture, ...more }, { train: { sequence_length: LENGTH } });

  await t.test('copies its objects, and the job names all datasets', async (t) => {
    const mixture = [
      { uri: URI, weight: 2 },
      { dataset: own.id, weight: 0.5 },
      { uri: other, format: 'text', weight: 1 },
    ];
    const train = { sequence_length: LENGTH };
    const before = (await datasets()).length;
    const plan = (await post({ mixture }, { url: '/v1/jobs?dry_run=true', train })).json<DryRun>();
    t.match(plan.spec.data, {
      mixture: [{ format: 'text', ...mixture[0] }, mixture[1], mixture[2]],
    });
    t.equal((await datasets()).length, before, 'a dry run copies nothing');

    const reply = await mixed(mixture);
    t.equal(reply.statusCode, 201, reply.body);
    const { spec } = reply.json<Job>();
    const copies = await datasets();
    const copyOf = (uri: string) => copies.find(({ source }) => source?.uri === uri)?.id ?? '';
    t.strictSame(spec.data.mixture, [
      { dataset: copyOf(URI), weight: 2 },
      { dataset: own.id, weight: 0.5 },
      { dataset: copyOf(other), weight: 1 },
    ]);
    t.notOk('dataset' in spec.data);
    t.strictSame(spec.sources, { [copyOf(URI)]: URI, [copyOf(other)]: other });
    for (const id of [copyOf(URI), own.id, copyOf(other)])
      t.equal((await stack.request({ method: 'DELETE', url: `/v1/datasets/${id}` })).statusCode, 409, id);

    const counted = (await post({ mixture }, { url: '/v1/jobs?dry_run=true', train })).json<DryRun>();
    const sequences = [TEXT.length, own.bytes, 40 * 13].map((bytes) => Math.floor((bytes - 1) / LENGTH));
    t.match(counted.work, { sequences_per_epoch: sequences.reduce((sum, each) => sum + each, 0) });
  });

  await t.test('can replace the dataset of a forked job', async (t) => {
    const job = await stack.createJob();
    const execution = await claimAndTrain(stack.store, job.id, { steps: 1 });
    const checkpoint = checkpointOf(job.id, 2);
    await putTestCheckpoint(stack.objects, checkpoint.prefix, { numels: [10, 6], ranks: 2 }, checkpoint.id);
    await stack.store.commitCheckpoint(job.id, execution, checkpoint);
    const fork = (data: object) =>
      stack.request({
        method: 'POST',
        url: `/v1/jobs/${job.id}/fork`,
        payload: { overrides: { data, train: { sequence_length: LENGTH } } },
      });
    const mixture = [
      { dataset: own.id, weight: 1 },
      { dataset: job.spec.data.dataset, weight: 3 },
    ];
    const reply = await fork({ dataset: null, mixture });
    t.equal(reply.statusCode, 201, reply.body);
    t.strictSame(reply.json<Job>().spec.data.mixture, mixture);
    t.match((await fork({ mixture })).json<Problem>().errors, [{ code: 'exactly_one_of' }]);
  });

  await t.test('names the entry with an error', async (t) => {
    const lines = await upload('{"text": "a line"}\n', 'jsonl');
    const refusals: [mixture: object[], pointer: string, code: string][] = [
      [[{ dataset: own.id }, { dataset: UNKNOWN }], '/data/mixture/1/dataset', 'dataset_not_found'],
      [
        [{ dataset: own.id }, { uri: 's3://texts/open/nothing' }],
        '/data/mixture/1/uri',
        'dataset_source_missing',
      ],
      [[{ dataset: own.id }, { dataset: own.id }], '/data/mixture/1/dataset', 'mixture_dataset_twice'],
      [[{ uri: URI }, { uri: URI }], '/data/mixture/1/uri', 'mixture_dataset_twice'],
      [[{ dataset: own.id }, { dataset: lines.id }], '/data/mixture/1/dataset', 'mixture_formats_differ'],
      [[{ dataset: own.id, weight: 1 }, { uri: URI }], '/data/mixture/1/weight', 'missing_field'],
      [[{ dataset: own.id, weight: 0 }], '/data/mixture/0/weight', 'out_of_range'],
      [[{ dataset: own.id, uri: URI }], '/data/mixture/0', 'exactly_one_of'],
      [[{ dataset: own.id, share: 1 }], '/data/mixture/0/share', 'unknown_field'],
      [[], '/data/mixture', 'wrong_length'],
    ];
    for (const [mixture, pointer, code] of refusals) {
      const { errors } = (await mixed(mixture)).json<Problem>();
      t.match(errors, [{ pointer, code }], `${pointer} ${code}`);
    }
    const both = (await mixed([{ dataset: own.id }], { dataset: own.id })).json<Problem>();
    t.match(both.errors, [{ pointer: '/data', code: 'exactly_one_of' }]);
  });

  await t.test('shows texts of each dataset in a preview, and names it in warnings', async (t) => {
    const [one, long] = ['one', 'a longer text '.repeat(3)];
    const few = await upload(`{"text": "${one}"}\n`, 'jsonl');
    const many = await upload(`{"text": "a"}\n${`{"text": "${long}"}\n`.repeat(2)}`, 'jsonl');
    const spec = {
      model: { preset: 'llama-tiny' },
      data: { mixture: [{ dataset: few.id }, { dataset: many.id }] },
      train: { steps: 1, sequence_length: LENGTH },
    };
    const url = '/v1/data-preview';
    const reply = await stack.request({ method: 'POST', url, payload: { spec, texts: 3 } });
    t.equal(reply.statusCode, 200, reply.body);
    const { read, texts, warnings } = reply.json<DataPreview>();
    t.match(read, {
      share: 1,
      bytes: few.bytes + many.bytes,
      texts: 4,
      tokens: one.length + 1 + 2 * long.length,
    });
    t.strictSame(
      texts.map(({ dataset, parts }) => [dataset, parts.map(({ text }) => text).join('')]),
      [
        [few.id, one],
        [many.id, 'a'],
      ],
    );
    t.match(warnings, [
      {
        pointer: '/train/sequence_length',
        code: 'cut',
        message: new RegExp(`^dataset ${many.id}: 2 of 3 texts \\(the first in line 2\\)`),
      },
    ]);
  });
});
