/** Models copied from a bucket folder. models.test.ts and models-refused.test.ts test the checks of a model. */
import t, { type Test } from 'tap';
import type { Job, Model, Page, Problem } from '../../../contracts/index.js';
import { modelFolder, TINY_CONFIG, tarOf } from '../../../formats/testing/models.js';
import { DatasetSources } from '../../../platform/dataset-sources.js';
import { type Fate, S3StandIn } from '../../../platform/testing/s3-stand-in.js';
import { storedKeys, upload } from '../../testing/model-uploads.js';
import { smallSpec, startTestStack } from '../../testing/stack.js';

process.env.AWS_ACCESS_KEY_ID = 'test';
process.env.AWS_SECRET_ACCESS_KEY = 'test';

async function start(t: Test, options: { fate?: (name: string) => Fate; model_bytes?: number } = {}) {
  const bucket = new S3StandIn();
  const asked: string[] = [];
  const door = await bucket.open((name) => {
    asked.push(name);
    return options.fate?.(name) ?? 'served';
  });
  const allowed = [{ bucket: 'zoo', prefix: 'open/' }];
  const sources = new DatasetSources({ allowed, s3Endpoint: door.endpoint });
  const { model_bytes = 10_000_000 } = options;
  const stack = await startTestStack({ sources, limits: { model_bytes } });
  t.teardown(async () => {
    await stack.close();
    await sources.close();
    door.close();
  });
  const put = (folder: string, files: ReadonlyMap<string, Buffer>) => {
    for (const [name, bytes] of files) bucket.objects.set(`${folder}/${name}`, bytes);
  };
  const register = (uri: string, headers = {}) => {
    const query = new URLSearchParams({ name: 'registered', uri });
    return stack.request({ method: 'POST', url: `/v1/models?${query}`, headers });
  };
  const models = async () => (await stack.request({ url: '/v1/models' })).json<Page<Model>>().data;
  return { bucket, asked, stack, put, register, models };
}

t.test('a folder becomes the same model as its archive, independent of later changes', async (t) => {
  const { bucket, stack, put, register } = await start(t);
  const files = modelFolder({ shards: 3 });
  put('open/tiny', files);
  for (const name of ['README.md', 'original/model.safetensors', ''])
    bucket.objects.set(`open/tiny/${name}`, Buffer.from('x'));
  bucket.objects.set('open/tiny-other/model.safetensors', Buffer.from('of another model'));
  const reply = await register('s3://zoo/open/tiny/');
  t.equal(reply.statusCode, 201, reply.body);
  const model = reply.json<Model>();
  t.equal(reply.headers.location, `/v1/models/${model.id}`);
  t.match(model, { name: 'registered', has_tokenizer: true, source: { uri: 's3://zoo/open/tiny' } });
  t.strictSame(model.ignored_files, ['README.md']);
  const uploaded = (await upload(stack, await tarOf(files))).json<Model>();
  t.equal(model.digest, uploaded.digest);
  t.strictSame(model.files, uploaded.files);
  t.notOk('source' in uploaded);

  put('open/tiny', new Map([['config.json', Buffer.from('{}')]]));
  for (const [name, bytes] of files)
    t.ok((await stack.objects.get(`models/${model.id}/${name}`)).equals(bytes), name);
  t.strictSame((await stack.request({ url: `/v1/models/${model.id}` })).json(), model);
  const { id } = await stack.upload('to be or not to be, that is the question. '.repeat(20));
  const payload = { ...smallSpec(id), model: { init_from: { model: model.id } } };
  const job = await stack.request({ method: 'POST', url: '/v1/jobs', payload });
  t.equal(job.statusCode, 201, job.body);
  t.match(job.json<Job>().spec.model.init_from, { model: model.id });
});

t.test('an invalid folder leaves nothing', async (t) => {
  const { bucket, put, register, stack, models } = await start(t);
  put('open/other', new Map([...modelFolder(), ['config.json', Buffer.from('no JSON')]]));
  const wide = Buffer.from(JSON.stringify({ ...TINY_CONFIG, hidden_size: 64 }));
  put('open/wide', new Map([...modelFolder({ shards: 2 }), ['config.json', wide]]));
  const part = modelFolder({ shards: 2 });
  part.delete('model-00002-of-00002.safetensors');
  put('open/part', part);
  bucket.objects.set('open/text/README.md', Buffer.from('# nothing'));
  const REFUSED: [string, number, string][] = [
    ['open/other', 422, 'model_config_invalid'],
    ['open/wide', 422, 'model_tensor_mismatch'],
    ['open/part', 422, 'model_file_missing'],
    ['open/text', 422, 'model_file_missing'],
    ['open/nowhere', 422, 'model_file_missing'],
  ];
  for (const [folder, status, code] of REFUSED) {
    const reply = await register(`s3://zoo/${folder}`);
    t.match(reply.json<Problem>(), { status, code }, `${folder}: ${reply.body}`);
  }
  t.same(await storedKeys(stack), []);
  t.same(await models(), []);
});

t.test('only from allowed buckets, within limits and quotas', async (t) => {
  const { asked, stack, put, register, models } = await start(t, { model_bytes: 1000 });
  put('open/tiny', modelFolder());
  put('opener/tiny', modelFolder());
  for (const uri of ['s3://zoo/opener/tiny', 's3://zoo/secret', 's3://other/open/tiny'])
    t.match((await register(uri)).json<Problem>(), { status: 403, code: 'dataset_uri_refused' }, uri);
  for (const uri of ['s3://zoo/', 's3://zoo/open//', 's3://zoo/open/../secret', 'http://127.0.0.1/open/tiny'])
    t.match((await register(uri)).json<Problem>(), { status: 400, code: 'invalid_parameter' }, uri);
  t.same(asked, [], 'no server received a request');
  const headers = await stack.headersOf('datasets');
  t.match((await register('s3://zoo/open/tiny', headers)).json<Problem>(), { code: 'insufficient_scope' });
  t.match((await register('s3://zoo/open/tiny')).json<Problem>(), { status: 413, code: 'model_too_large' });
  await stack.store.putQuota('default', { max_jobs: null, max_ranks: null, max_storage_bytes: 10 });
  put('open/small', new Map([['config.json', Buffer.from(JSON.stringify(TINY_CONFIG))]]));
  t.match((await register('s3://zoo/open/small')).json<Problem>(), { code: 'storage_quota_exceeded' });
  t.notOk(
    asked.some((name) => name.startsWith('GetObject')),
    'nothing was read',
  );
  t.same(await models(), []);
  const both = await stack.request({
    method: 'POST',
    url: `/v1/models?name=x&uri=s3://zoo/open/tiny`,
    headers: { 'content-type': 'application/x-tar' },
    payload: 'x',
  });
  t.match(both.json<Problem>(), { status: 400, code: 'bad_request' });
  const neither = await stack.request({ method: 'POST', url: '/v1/models?name=x' });
  t.match(neither.json<Problem>(), { status: 400, code: 'body_required' });
});

t.test('broken reads are resumed', async (t) => {
  let cut = false;
  const { put, register } = await start(t, {
    fate: (name) => {
      if (cut || !name.startsWith('GetObject model')) return 'served';
      cut = true;
      return 'cut';
    },
  });
  put('open/tiny', modelFolder());
  const reply = await register('s3://zoo/open/tiny');
  t.equal(reply.statusCode, 201, reply.body);
  t.ok(cut);
});
