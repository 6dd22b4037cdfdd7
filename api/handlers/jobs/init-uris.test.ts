/** Jobs that start from a model in a bucket folder. model-uris.test.ts tests the copy itself. */
import { EventEmitter, once } from 'node:events';
import t from 'tap';
import type { DryRun, Estimate, Job, JobSpec, Model, Problem } from '../../../contracts/index.js';
import { modelFolder, TINY_CONFIG } from '../../../formats/testing/models.js';
import { repeatAfterLeaving } from '../../testing/leaving-client.js';
import {
  startWithFolder as start,
  FOLDER_TEXT as TEXT,
  FOLDER_URI as URI,
} from '../../testing/model-bucket.js';
import { storedKeys } from '../../testing/model-uploads.js';
import { smallSpec } from '../../testing/stack.js';

const AT = '/model/init_from/uri';

const reads = (asked: readonly string[]) => asked.filter((name) => name.startsWith('GetObject'));
const weightReads = (asked: readonly string[]) =>
  reads(asked).filter((name) => name.endsWith('.safetensors')).length;
const wrong = (reply: { json<T>(): T }) =>
  reply.json<Problem>().errors?.map(({ pointer, code }) => `${pointer} ${code}`);

t.test('an unchanged folder is copied once, to a model that the jobs refer to', async (t) => {
  const { bucket, stack, asked, put, post, models } = await start(t);
  const reply = await post({ uri: `${URI}/` });
  t.equal(reply.statusCode, 201, reply.body);
  const job = reply.json<Job>();
  const [model] = await models();
  t.match(model, { name: 'tiny', has_tokenizer: true, source: { uri: URI, version: /^sha256:/ } });
  t.strictSame(job.spec.model.init_from, { model: model?.id });
  t.match(job.spec.model, { preset: null, config: { hidden_size: TINY_CONFIG.hidden_size } });
  t.equal(job.spec.data.tokenizer, model?.id);
  t.equal(weightReads(asked), 2);

  const text = await post(URI, { key: 'text' });
  t.strictSame(text.json<Job>().spec.model.init_from, { model: model?.id }, 'a string is the URI');
  t.equal((await post(URI, { key: 'text' })).headers['idempotent-replayed'], 'true');

  put('open/tiny', new Map([['README.md', Buffer.from('changes nothing')]]));
  const before = reads(asked).length;
  t.strictSame((await post({ uri: URI })).json<Job>().spec.model.init_from, { model: model?.id });
  t.equal(reads(asked).length, before, 'nothing of the same folder is read again');

  const config = Buffer.from(JSON.stringify({ ...TINY_CONFIG, bos_token_id: 7 }));
  bucket.objects.set('open/tiny/config.json', config);
  const changed = (await post({ uri: URI })).json<Job>();
  t.not(changed.spec.data.tokenizer, model?.id, 'a folder with one changed file becomes another model');
  t.equal((await models()).length, 2);

  const url = `/v1/models/${changed.spec.data.tokenizer}`;
  t.equal(
    (await stack.request({ method: 'DELETE', url })).statusCode,
    409,
    'it counts as in use like any other model',
  );
  await stack.store.requestCancel(changed.id);
  t.equal((await stack.request({ method: 'DELETE', url })).statusCode, 204);
  t.equal((await post({ uri: URI })).statusCode, 201, 'a deleted copy is made again');
  t.equal((await models()).length, 2);
});

t.test('a registered model is used, a model of another project is not', async (t) => {
  const { stack, asked, post } = await start(t);
  const url = `/v1/models?name=mine&uri=${encodeURIComponent(URI)}`;
  const mine = (await stack.request({ method: 'POST', url })).json<Model>();
  t.strictSame((await post({ uri: URI })).json<Job>().spec.model.init_from, { model: mine.id });
  t.equal(weightReads(asked), 2);
  t.equal(await stack.store.findModelCopy('others', mine.source ?? { uri: '' }), null);
  t.match(await stack.store.findModelCopy('default', mine.source ?? { uri: '' }), { id: mine.id });
  t.equal(
    await stack.store.findModelCopy('default', { uri: URI }),
    null,
    'without a version every request copies',
  );
});

t.test('concurrent requests wait for one copy of the model and one of the data', async (t) => {
  const { bucket, asked, post, models } = await start(t);
  bucket.objects.set('open/play.txt', Buffer.from(TEXT));
  const spec = { data: { uri: 's3://zoo/open/play.txt', tokenizer: 'bytes' } };
  const keys = ['a', 'a', 'a', 'b'];
  const replies = await Promise.all(keys.map((key) => post({ uri: URI }, { key, spec })));
  t.same(
    replies.map(({ statusCode }) => statusCode),
    [201, 201, 201, 201],
  );
  t.equal(new Set(replies.map((reply) => reply.json<Job>().id)).size, 2, 'one job for each key');
  t.equal(weightReads(asked), 2);
  t.equal(reads(asked).filter((name) => name === 'GetObject play.txt').length, 1);
  t.equal((await models()).length, 1);
});

t.test('a repeated request reads nothing', async (t) => {
  const { bucket, asked, post } = await start(t);
  const first = await post({ uri: URI }, { key: 'k' });
  t.equal(first.statusCode, 201, first.body);
  bucket.objects.clear();
  const before = asked.length;
  const second = await post({ uri: URI }, { key: 'k' });
  t.equal(second.headers['idempotent-replayed'], 'true');
  t.equal(second.json<Job>().id, first.json<Job>().id);
  const reused = await post({ uri: `${URI}2` }, { key: 'k' });
  t.match(reused.json<Problem>(), { status: 422, code: 'idempotency_key_reused' });
  t.equal(asked.length, before);
});

t.test('a dry run reads config.json only, an estimate reads nothing', async (t) => {
  const { stack, asked, post, models } = await start(t);
  const url = '/v1/jobs?dry_run=true';
  const plan = await post({ uri: URI }, { url });
  t.equal(plan.statusCode, 200, plan.body);
  const { spec, estimate } = plan.json<DryRun>();
  t.strictSame(spec.model.init_from, { uri: URI });
  t.match(spec.model, { preset: null, config: { hidden_size: TINY_CONFIG.hidden_size } });
  t.notOk('tokenizer' in spec.data, 'the model has no id yet');
  const bytes = await post(
    { uri: URI },
    { url, spec: { data: { uri: 's3://zoo/open/tiny/config.json', tokenizer: 'bytes' } } },
  );
  t.match(bytes.json<DryRun>().spec.data, { uri: 's3://zoo/open/tiny/config.json', tokenizer: 'bytes' });
  t.strictSame([...new Set(reads(asked))], ['GetObject config.json']);
  t.same(await models(), []);

  const before = asked.length;
  const ask = (model: object) =>
    stack.request({
      method: 'POST',
      url: '/v1/estimate',
      payload: { spec: { ...smallSpec(`ds_${'0'.repeat(26)}`), model } },
    });
  t.strictSame(wrong(await ask({ init_from: { uri: URI } })), ['/spec/model/config missing_field']);
  const known = await ask({ config: TINY_CONFIG, init_from: { uri: 's3://nowhere/at/all' } });
  t.equal(known.statusCode, 200, known.body);
  t.equal(known.json<Estimate>().num_params, estimate.num_params);
  t.equal(asked.length, before);

  await post({ uri: URI });
  const [model] = await models();
  const now = (await post({ uri: URI }, { url })).json<DryRun>();
  t.strictSame(now.spec.model.init_from, { model: model?.id }, 'an existing copy is named');
  t.equal(now.spec.data.tokenizer, model?.id);
});

t.test('errors are reported at the field, together with all other errors', async (t) => {
  const { bucket, asked, put, post, models, stack } = await start(t);
  const some = (...names: string[]) => new Map([...modelFolder()].filter(([name]) => names.includes(name)));
  put('open/no-config', some('model.safetensors'));
  put('open/no-weights', some('config.json'));
  put('open/odd', new Map([...modelFolder(), ['config.json', Buffer.from('{"model_type": "bert"}')]]));
  put('open/large', new Map([...modelFolder(), ['model.safetensors', Buffer.alloc(1_000_001)]]));
  bucket.objects.set('open/text/README.md', Buffer.from('# nothing'));
  const REFUSED: [string, string][] = [
    ['s3://zoo/open/no-config', 'model_file_missing'],
    ['s3://zoo/open/no-weights', 'model_file_missing'],
    ['s3://zoo/open/odd', 'model_config_invalid'],
    ['s3://zoo/open/large', 'model_too_large'],
    ['s3://zoo/open/text', 'model_file_missing'],
    ['s3://zoo/open/nowhere', 'model_file_missing'],
    ['s3://zoo/closed', 'dataset_uri_refused'],
    ['s3://zoo/open/../closed', 'wrong_format'],
  ];
  for (const [uri, code] of REFUSED) {
    const spec = { data: { uri: 's3://zoo/open/nothing' }, train: { steps: 10, micro_batch_size: 5 } };
    const reply = await post({ uri }, { spec });
    t.match(reply.json<Problem>(), { status: 422, code: 'validation_failed' }, uri);
    const all = ['/data/uri dataset_source_missing', `${AT} ${code}`, '/train/micro_batch_size'];
    for (const each of all)
      t.ok(
        wrong(reply)?.some((text) => text.startsWith(each)),
        `${uri}, ${each}: ${reply.body}`,
      );
  }
  t.equal(weightReads(asked), 0, 'no weights are read for an invalid document');

  const differs = await post({ uri: URI }, { model: { preset: 'llama-tiny' } });
  t.strictSame(wrong(differs), [`${AT} init_model_mismatch`]);
  const missing = await post('s3://zoo/open/nowhere');
  t.strictSame(wrong(missing), ['/model/init_from model_file_missing'], 'a string has no fields');
  for (const restore of ['full', 'continue'] as const)
    t.strictSame(wrong(await post({ uri: URI, restore })), ['/model/init_from/restore field_without_effect']);
  const both = await post({ uri: URI, model: `mdl_${'0'.repeat(26)}` });
  t.strictSame(wrong(both), ['/model/init_from exactly_one_of']);
  t.equal(weightReads(asked), 0);
  t.same(await models(), []);
  t.strictSame(await storedKeys(stack, 'models/'), []);
});

t.test('invalid weights are reported and leave nothing behind', async (t) => {
  const { put, post, models, stack } = await start(t);
  const wide = Buffer.from(JSON.stringify({ ...TINY_CONFIG, hidden_size: 64 }));
  put('open/wide', new Map([...modelFolder(), ['config.json', wide]]));
  put('open/words', new Map([...modelFolder(), ['tokenizer.json', Buffer.from('{}')]]));
  t.strictSame(wrong(await post({ uri: 's3://zoo/open/wide' })), [`${AT} model_tensor_mismatch`]);
  t.strictSame(wrong(await post({ uri: 's3://zoo/open/words' })), [`${AT} tokenizer_invalid`]);
  t.same(await models(), []);
  t.strictSame(await storedKeys(stack, 'models/'), []);
});

t.test('the copied model stays if the document does not fit its content', async (t) => {
  const { put, post, models, asked } = await start(t);
  const small = { ...TINY_CONFIG, vocab_size: 20 };
  put('open/small', modelFolder({ config: small }));
  const refused = await post({ uri: 's3://zoo/open/small' });
  t.strictSame(wrong(refused), ['/data/tokenizer vocab_too_small']);
  t.equal((await models()).length, 1);
  const before = weightReads(asked);
  t.strictSame(wrong(await post({ uri: 's3://zoo/open/small' })), ['/data/tokenizer vocab_too_small']);
  t.equal(weightReads(asked), before);
  t.equal((await models()).length, 1);
});

t.test('it requires the scope and the storage of a model', async (t) => {
  const { stack, asked, post, models } = await start(t);
  const { id } = await stack.upload(TEXT);
  const payload: JobSpec = { ...smallSpec(id), model: { init_from: { uri: URI } } };
  const headers = await stack.headersOf('jobs:write', 'datasets');
  for (const url of ['/v1/jobs', '/v1/jobs?dry_run=true']) {
    const reply = await stack.request({ method: 'POST', url, headers, payload });
    t.match(reply.json<Problem>(), { status: 403, code: 'insufficient_scope', detail: /models/ });
  }
  t.same(asked, [], 'a key that may not register models does not learn whether the folder exists');
  const quota = { max_jobs: null, max_ranks: null, max_storage_bytes: 10 };
  await stack.store.putQuota('default', quota);
  t.match((await post({ uri: URI })).json<Problem>(), { status: 403, code: 'storage_quota_exceeded' });
  t.equal(weightReads(asked), 0);
  t.same(await models(), []);
  await stack.store.putQuota('default', { ...quota, max_storage_bytes: null });
  t.equal((await post({ uri: URI })).statusCode, 201);
});

t.test(
  'a folder that changes during its copy is refused, and the next request copies the new state',
  async (t) => {
    const others = modelFolder({ shards: 2, dtype: 'F32' });
    let change = () => {};
    const { put, post, models } = await start(t, { reading: async () => change() });
    change = () => put('open/tiny', others);
    const reply = await post({ uri: URI }, { key: 'k' });
    t.match(reply.json<Problem>(), { status: 409, code: 'dataset_source_changed' });
    t.same(await models(), []);
    t.equal((await post({ uri: URI }, { key: 'k' })).statusCode, 201);
    t.match(await models(), [{ dtypes: ['fp32'] }]);
  },
);

t.test('a copy continues after its client disconnects, and the next request waits for it', async (t) => {
  const events = new EventEmitter();
  let copies = 0;
  const { stack, models } = await start(t, {
    reading: async () => {
      copies += 1;
      if (copies > 1) return;
      const goOn = once(events, 'go on');
      events.emit('reading');
      await goOn;
    },
  });
  const { id } = await stack.upload(TEXT);
  const url = `${await stack.listen()}/v1/jobs`;
  const body = JSON.stringify({ ...smallSpec(id), model: { init_from: { uri: URI } } });
  const headers = {
    ...(await stack.headersOf('jobs:write', 'models')),
    'content-type': 'application/json',
    'idempotency-key': 'x',
  };
  const reply = await repeatAfterLeaving(url, { headers, body }, events);
  t.equal(reply.status, 201);
  t.equal(copies, 2, 'each shard was read once');
  t.equal((await models()).length, 1);
});

t.test('a failed copy leaves nothing, and the next request repeats it', async (t) => {
  let fail = true;
  const { post, models, stack } = await start(t, {
    store: (store) => ({
      ...store,
      async putModel(model) {
        if (fail) throw new Error('the record is not written');
        await store.putModel(model);
      },
    }),
  });
  t.equal((await post({ uri: URI }, { key: 'k' })).statusCode, 500);
  t.same(await models(), []);
  t.strictSame(await storedKeys(stack, 'models/'), []);
  fail = false;
  t.equal((await post({ uri: URI }, { key: 'k' })).statusCode, 201);
});
