/** Jobs whose data is an S3 object. dataset-uris.test.ts tests the copy itself. */
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { type Dataset, type DryRun, datasetKey, type Job, type Problem } from '../../../contracts/index.js';
import { putTestCheckpoint } from '../../../formats/testing/checkpoints.js';
import { startWithData as start, TEXT, URI } from '../../testing/data-bucket.js';
import { smallSpec } from '../../testing/stack.js';
import { checkpointOf, claimAndTrain } from '../../testing/training.js';

process.env.AWS_ACCESS_KEY_ID = 'test';
process.env.AWS_SECRET_ACCESS_KEY = 'test';

const CHATS = Buffer.from(
  `${JSON.stringify({ messages: [{ role: 'assistant', content: 'Because.'.repeat(40) }] })}\n`.repeat(20),
);

const reads = (requested: readonly string[]) =>
  requested.filter((name) => name.startsWith('GetObject')).length;

t.test('an unchanged object is copied once, to a dataset that the jobs refer to', async (t) => {
  const { bucket, stack, requested, post, datasets } = await start(t);
  const reply = await post({ uri: URI, seed: 3 });
  t.equal(reply.statusCode, 201, reply.body);
  const job = reply.json<Job>();
  const [dataset] = await datasets();
  t.match(dataset, { name: 'play.txt', format: 'text', bytes: TEXT.length, source: { uri: URI } });
  t.equal(job.spec.data.dataset, dataset?.id);
  t.match(job.spec.data, { seed: 3, tokenizer: 'bytes', packing: 'split' });
  t.notOk('uri' in job.spec.data || 'format' in job.spec.data, 'the resolved document has the dataset only');
  t.ok((await stack.objects.get(datasetKey(dataset?.id ?? ''))).equals(TEXT));

  const again = (await post({ uri: URI })).json<Job>();
  t.equal(again.spec.data.dataset, dataset?.id);
  t.equal(reads(requested), 1, 'the same object is not read again');

  const other = (await post({ uri: URI, format: 'jsonl' })).json<Problem>();
  t.match(
    other.errors,
    [{ pointer: '/data/uri', code: 'dataset_line_invalid' }],
    'another format is another dataset',
  );

  bucket.objects.set('open/play.txt', Buffer.concat([TEXT, TEXT]));
  const changed = (await post({ uri: URI })).json<Job>();
  t.not(changed.spec.data.dataset, dataset?.id, 'a changed object becomes another dataset');
  t.equal((await datasets()).length, 2);

  const removal = await stack.request({
    method: 'DELETE',
    url: `/v1/datasets/${changed.spec.data.dataset}`,
  });
  t.equal(removal.statusCode, 409, 'it counts as in use like any other dataset');
  await stack.store.requestCancel(changed.id);
  const url = `/v1/datasets/${changed.spec.data.dataset}`;
  t.equal((await stack.request({ method: 'DELETE', url })).statusCode, 204);
  t.equal((await post({ uri: URI })).statusCode, 201, 'a deleted copy is made again');
  t.equal((await datasets()).length, 2);
});

t.test('a compressed object is copied once, and nothing is assumed about its tokens', async (t) => {
  const { bucket, requested, post, datasets } = await start(t);
  const packed = gzipSync(TEXT);
  bucket.objects.set('open/play.txt.gz', packed);
  const uri = `${URI}.gz`;
  t.equal((await post({ uri })).statusCode, 201);
  t.equal((await post({ uri })).statusCode, 201);
  t.equal(reads(requested), 1);
  const [dataset] = await datasets();
  t.match(dataset, { bytes: TEXT.length, source: { uri, bytes: packed.length } });
});

t.test('a registered dataset is used, a dataset of another project is not', async (t) => {
  const { stack, requested, post } = await start(t);
  const url = `/v1/datasets?name=mine&uri=${encodeURIComponent(URI)}`;
  const mine = (await stack.request({ method: 'POST', url })).json<Dataset>();
  t.equal((await post({ uri: URI })).json<Job>().spec.data.dataset, mine.id);
  t.equal(reads(requested), 1);
  const headers = await stack.headersIn('others');
  const payload = { ...smallSpec(''), data: { uri: URI } };
  const theirs = (await stack.request({ method: 'POST', url: '/v1/jobs', headers, payload })).json<Job>();
  t.not(theirs.spec.data.dataset, mine.id);
  t.equal(reads(requested), 2);
});

t.test('concurrent requests wait for one copy', async (t) => {
  const { requested, post, datasets } = await start(t);
  const replies = await Promise.all(['a', 'a', 'a', 'b'].map((key) => post({ uri: URI }, { key })));
  t.same(
    replies.map(({ statusCode }) => statusCode),
    [201, 201, 201, 201],
  );
  t.equal(new Set(replies.map((reply) => reply.json<Job>().id)).size, 2, 'one job for each key');
  t.equal(reads(requested), 1);
  t.equal((await datasets()).length, 1);
});

t.test('a repeated request reads nothing', async (t) => {
  const { bucket, requested, post } = await start(t);
  const first = await post({ uri: URI }, { key: 'k' });
  bucket.objects.delete('open/play.txt');
  const before = requested.length;
  const second = await post({ uri: URI }, { key: 'k' });
  t.equal(second.headers['idempotent-replayed'], 'true');
  t.equal(second.json<Job>().id, first.json<Job>().id);
  t.equal(requested.length, before);
  const reused = await post({ uri: `${URI}2` }, { key: 'k' });
  t.match(reused.json<Problem>(), { status: 422, code: 'idempotency_key_reused' });
  t.equal(requested.length, before, 'nor does another request with the same idempotency key');
});

t.test('objects to evaluate on are copied, each once, and errors are reported at their field', async (t) => {
  const { bucket, requested, post, datasets } = await start(t);
  const other = 's3://texts/open/other.txt';
  bucket.objects.set('open/other.txt', Buffer.from('another text '.repeat(40)));
  const entries = [
    { name: 'other', uri: other },
    { name: 'again', uri: other, format: 'text' },
    { name: 'training', uri: URI },
  ];
  const train = { evaluation: { datasets: entries } };
  const plan = (await post({ uri: URI }, { url: '/v1/jobs?dry_run=true', train })).json<DryRun>();
  t.match(plan.spec.train.evaluation, { every_steps: 100, datasets: entries });
  t.notOk('dataset' in (plan.spec.train.evaluation?.datasets[0] ?? {}));
  t.same(await datasets(), [], 'a dry run copies nothing');
  const { spec } = (await post({ uri: URI }, { train })).json<Job>();
  const [copied] = (await datasets()).filter(({ source }) => source?.uri === other);
  t.same(spec.train.evaluation, {
    every_steps: 100,
    datasets: [
      { name: 'other', dataset: copied?.id },
      { name: 'again', dataset: copied?.id },
      { name: 'training', dataset: spec.data.dataset },
    ],
  });
  t.equal((await datasets()).length, 2);
  t.equal(reads(requested), 2);

  bucket.objects.set('open/latin', Buffer.concat([TEXT, Buffer.from([0xff])]));
  const at = '/train/evaluation/datasets';
  const unknown = 'ds_00000000000000000000000000';
  const refused: [entry: object, pointer: string, code: string][] = [
    [{ uri: 's3://texts/open/nothing' }, `${at}/0/uri`, 'dataset_source_missing'],
    [{ uri: 's3://texts/open/latin' }, `${at}/0/uri`, 'dataset_not_utf8'],
    [{ uri: other, format: 'tokens' }, `${at}/0/uri`, 'dataset_tokens_invalid'],
    [{ dataset: unknown }, `${at}/0/dataset`, 'dataset_not_found'],
    [{ dataset: unknown, uri: other }, `${at}/0`, 'exactly_one_of'],
    [{ uri: other, name: 'Code' }, `${at}/0/name`, 'wrong_format'],
    [{ uri: other, name: '__proto__' }, `${at}/0/name`, 'wrong_format'],
    [{ uri: other, name: 'validation' }, `${at}/0/name`, 'evaluation_name_taken'],
  ];
  for (const [entry, pointer, code] of refused) {
    const evaluation = { datasets: [{ name: 'e', ...entry }] };
    const reply = (await post({ uri: URI }, { train: { evaluation } })).json<Problem>();
    t.match(reply.errors, [{ pointer, code }], code);
  }
  const short = await post({ uri: URI }, { train: { ...train, sequence_length: 600 } });
  t.match(short.json<Problem>().errors, [
    { pointer: `${at}/0/uri`, code: 'sequence_longer_than_data' },
    { pointer: `${at}/1/uri`, code: 'sequence_longer_than_data' },
  ]);
});

t.test('a dry run only looks the object up, an estimate does not', async (t) => {
  const { bucket, stack, requested, post, datasets } = await start(t);
  bucket.objects.set('open/chats', CHATS);
  const url = '/v1/jobs?dry_run=true';
  const plan = (await post({ uri: URI, validation_fraction: 0.1 }, { url })).json<DryRun>();
  t.match(plan.spec.data, { uri: URI, format: 'text', tokenizer: 'bytes', packing: 'split' });
  t.notOk('dataset' in plan.spec.data);
  const chats = (await post({ uri: 's3://texts/open/chats', format: 'jsonl' }, { url })).json<DryRun>();
  t.match(chats.spec.data, { format: 'jsonl', packing: 'whole' });
  const short = await post({ uri: URI }, { url, train: { sequence_length: 2000 } });
  t.match(short.json<Problem>().errors, [{ code: 'sequence_longer_than_data', message: /open\/play.txt/ }]);
  const requestedOfEstimate = requested.length;
  const payload = { spec: { ...smallSpec(''), data: { uri: 's3://nowhere/at/all' } } };
  t.equal((await stack.request({ method: 'POST', url: '/v1/estimate', payload })).statusCode, 200);
  t.equal(requested.length, requestedOfEstimate);
  t.equal(reads(requested), 0);
  t.same(await datasets(), []);
  await post({ uri: URI });
  const known = (await post({ uri: URI }, { url })).json<DryRun>();
  t.equal(known.spec.data.dataset, (await datasets())[0]?.id, 'an existing copy is named');
});

t.test('errors are reported at the field, together with all other errors', async (t) => {
  const { bucket, requested, post, datasets, stack } = await start(t);
  bucket.objects.set('open/latin', Buffer.concat([TEXT, Buffer.from([0xff])]));
  bucket.objects.set('open/large', Buffer.alloc(100_001, 'a'));
  bucket.objects.set('open/empty', Buffer.alloc(0));
  bucket.objects.set('open/chats', CHATS);
  const at = '/data/uri';
  const REFUSED: [string, string, object][] = [
    ['open/latin', 'dataset_not_utf8', {}],
    ['open/large', 'dataset_too_large', {}],
    ['open/empty', 'dataset_empty', {}],
    ['open/nothing', 'dataset_source_missing', {}],
    ['open/play.txt', 'dataset_tokens_invalid', { format: 'tokens' }],
    ['closed/a', 'dataset_uri_refused', {}],
    ['open/../closed', 'wrong_format', {}],
  ];
  for (const [key, code, more] of REFUSED) {
    const reply = (await post({ uri: `s3://texts/${key}`, ...more })).json<Problem>();
    t.match(reply, { status: 422, code: 'validation_failed' }, key);
    t.ok(
      reply.errors?.some((error) => error.pointer === at && error.code === code),
      `${key}: ${JSON.stringify(reply.errors)}`,
    );
  }
  const both = (
    await post({ uri: 's3://texts/open/nothing' }, { train: { micro_batch_size: 5 } })
  ).json<Problem>();
  t.same(both.errors?.map(({ pointer }) => pointer).sort(), [at, '/train/micro_batch_size'].sort());
  const before = reads(requested);
  const bad = await post({ uri: URI }, { train: { micro_batch_size: 5 } });
  t.equal(bad.statusCode, 422);
  t.equal(reads(requested), before, 'nothing is copied for an invalid document');
  for (const data of [{}, { uri: URI, dataset: `ds_${'0'.repeat(26)}` }])
    t.match((await post(data)).json<Problem>().errors, [{ pointer: '/data', code: 'exactly_one_of' }]);
  const { id } = await stack.upload(String(TEXT));
  t.match((await post({ dataset: id, format: 'text' })).json<Problem>().errors, [
    { pointer: '/data/format', code: 'field_without_effect' },
  ]);
  t.same(
    (await datasets()).map((dataset) => dataset.id),
    [id],
    'no content is left',
  );
});

t.test('an error found in the content leaves a dataset, which the next request uses', async (t) => {
  const { bucket, requested, post, datasets } = await start(t);
  bucket.objects.set('open/texts', Buffer.from(`{"text": "${'a text '.repeat(60)}"}\n`.repeat(9)));
  const data = { uri: 's3://texts/open/texts', format: 'jsonl' };
  const template = '{% for m in messages %}{{ m.content }}{% endfor %}';
  const refused = (await post({ ...data, chat_template: template })).json<Problem>();
  t.match(refused.errors, [{ pointer: '/data/chat_template', code: 'field_without_effect' }]);
  t.equal((await datasets()).length, 1);
  const reply = await post(data);
  t.equal(reply.statusCode, 201, reply.body);
  t.equal(reads(requested), 1);
  t.equal((await datasets()).length, 1);
});

t.test('it requires the scope and the storage of a dataset', async (t) => {
  const { stack, requested, post, datasets } = await start(t);
  const headers = await stack.headersOf('jobs:write');
  const payload = { ...smallSpec(''), data: { uri: URI } };
  for (const url of ['/v1/jobs', '/v1/jobs?dry_run=true']) {
    const reply = await stack.request({ method: 'POST', url, headers, payload });
    t.match(reply.json<Problem>(), { status: 403, code: 'insufficient_scope', detail: /datasets/ });
  }
  t.same(requested, [], 'a key that may not register datasets does not learn whether the object exists');
  const both = await stack.headersOf('jobs:write', 'datasets');
  const quota = { max_jobs: null, max_ranks: null, max_storage_bytes: TEXT.length - 1 };
  await stack.store.putQuota('default', quota);
  const full = await stack.request({ method: 'POST', url: '/v1/jobs', headers: both, payload });
  t.match(full.json<Problem>(), { status: 403, code: 'storage_quota_exceeded' });
  t.equal(reads(requested), 0);
  t.same(await datasets(), []);
  await stack.store.putQuota('default', { ...quota, max_storage_bytes: 2 * TEXT.length });
  t.equal((await post({ uri: URI })).statusCode, 201);
});

t.test('a fork may use an object as its data', async (t) => {
  const { stack, post } = await start(t);
  const job = (await post({ uri: URI })).json<Job>();
  const execution = await claimAndTrain(stack.store, job.id, { steps: 1 });
  const checkpoint = checkpointOf(job.id, 2);
  await putTestCheckpoint(stack.objects, checkpoint.prefix, { numels: [10, 6], ranks: 2 }, checkpoint.id);
  await stack.store.commitCheckpoint(job.id, execution, checkpoint);
  const overrides = { data: { dataset: null, uri: URI } };
  const url = `/v1/jobs/${job.id}/fork`;
  const reply = await stack.request({ method: 'POST', url, payload: { overrides } });
  t.equal(reply.statusCode, 201, reply.body);
  t.equal(reply.json<Job>().spec.data.dataset, job.spec.data.dataset);
});
