/** Jobs with a `tokenizer.json` in a bucket. */
import t, { type Test } from 'tap';
import type { DryRun, Estimate, Job, Problem } from '../../../contracts/index.js';
import { collectGarbage } from '../../../control/garbage/collect.js';
import { recover } from '../../../control/recovery/recover.js';
import { MANIFEST_FILE } from '../../../formats/checkpoint/layout.js';
import { LARGE_TOKENIZER, TINY_TOKENIZER } from '../../../formats/testing/models.js';
import { tokenFile } from '../../../formats/testing/tokens.js';
import { storedBytes } from '../../../state/index.js';
import { type StartedWithFolder, startWithFolder } from '../../testing/model-bucket.js';
import { storedKeys } from '../../testing/model-uploads.js';
import { ADMIN_KEY, smallSpec } from '../../testing/stack.js';
import { claimAndTrain } from '../../testing/training.js';

const URI = 's3://zoo/open/words/tokenizer.json';
const AT = '/data/tokenizer';
const SMALL = Buffer.from(JSON.stringify(TINY_TOKENIZER));
/** One token more than the jobs' model has. */
const LARGE = Buffer.from(JSON.stringify(LARGE_TOKENIZER));

interface Started extends StartedWithFolder {
  ask(
    data: object,
    more?: { key?: string; url?: string; changes?: object },
  ): ReturnType<StartedWithFolder['post']>;
  reads(): string[];
}

async function start(t: Test, options: Parameters<typeof startWithFolder>[1] = {}): Promise<Started> {
  const started = await startWithFolder(t, options);
  const { bucket, stack, asked } = started;
  bucket.objects.set('open/words/tokenizer.json', SMALL);
  const { id } = await stack.upload('to be or not to be '.repeat(20));
  return {
    ...started,
    ask(data, { key, url = '/v1/jobs', changes = {} } = {}) {
      const spec = smallSpec(id);
      const payload = { ...spec, data: { ...spec.data, ...data }, ...changes };
      const headers = key === undefined ? {} : { 'idempotency-key': key };
      return stack.request({ method: 'POST', url, payload, headers });
    },
    reads: () => asked.filter((name) => name.startsWith('GetObject')),
  };
}

const wrong = (reply: { json<T>(): T }) =>
  reply.json<Problem>().errors?.map(({ pointer, code }) => `${pointer} ${code}`);

t.test('equal content shares one copy, which the jobs refer to and keep', async (t) => {
  const { bucket, stack, ask, reads, models } = await start(t);
  const stored = storedBytes(await stack.store.getUse('default'));
  const reply = await ask({ tokenizer: URI });
  t.equal(reply.statusCode, 201, reply.body);
  const job = reply.json<Job>();
  const [model] = await models();
  t.equal(job.spec.data.tokenizer, model?.id);
  t.match(model, {
    name: 'tokenizer.json',
    model_type: null,
    num_parameters: 0,
    tokenizer: { vocab_size: 27, chat_template: null },
    source: { uri: URI, version: /^sha256:/ },
    bytes: SMALL.length,
    files: [{ name: 'tokenizer.json', bytes: SMALL.length }],
  });
  t.strictSame(model?.config, {});
  t.same(await stack.objects.get(`models/${model?.id}/tokenizer.json`), SMALL);
  t.equal(storedBytes(await stack.store.getUse('default')) - stored, SMALL.length, 'it counts');

  const before = reads().length;
  t.equal((await ask({ tokenizer: URI })).json<Job>().spec.data.tokenizer, model?.id);
  t.equal(reads().length, before, 'an unchanged object is not read again');
  bucket.objects.set('open/elsewhere.json', SMALL);
  const elsewhere = await ask({ tokenizer: 's3://zoo/open/elsewhere.json' });
  t.equal(elsewhere.json<Job>().spec.data.tokenizer, model?.id);
  t.equal((await models()).length, 1);

  bucket.objects.set('open/words/tokenizer.json', Buffer.concat([SMALL, Buffer.from('\n')]));
  const changed = (await ask({ tokenizer: URI })).json<Job>();
  t.not(changed.spec.data.tokenizer, model?.id);
  t.equal((await models()).length, 2);

  const url = `/v1/models/${changed.spec.data.tokenizer}`;
  t.equal(
    (await stack.request({ method: 'DELETE', url })).statusCode,
    409,
    'it counts as in use like any other model',
  );
  await stack.store.requestCancel(changed.id);
  t.equal((await stack.request({ method: 'DELETE', url })).statusCode, 204);
  t.same(await storedKeys(stack, url.slice('/v1/'.length)), []);
  t.equal((await ask({ tokenizer: URI })).statusCode, 201, 'a deleted copy is made again');
  t.equal((await models()).length, 2);
});

t.test('concurrent requests share one copy of equal content at two URIs', async (t) => {
  const { bucket, ask, models } = await start(t);
  bucket.objects.set('open/elsewhere.json', SMALL);
  const uris = [URI, 's3://zoo/open/elsewhere.json', URI, 's3://zoo/open/elsewhere.json'];
  const keys = ['a', 'b', 'a', 'c'];
  const asking = uris.map((tokenizer, index) => ask({ tokenizer }, { key: keys[index] as string }));
  const jobs = (await Promise.all(asking)).map((reply) => reply.json<Job>());
  t.equal(new Set(jobs.map(({ id }) => id)).size, 3, 'one job for each key');
  const named = jobs.map(({ spec }) => spec.data.tokenizer);
  t.strictSame(
    (await models()).map(({ id }) => id),
    [...new Set(named)],
  );
});

t.test('a dry run reads and checks it without a copy; an estimate reads nothing', async (t) => {
  const { bucket, stack, asked, ask, models } = await start(t);
  const url = '/v1/jobs?dry_run=true';
  t.equal((await ask({ tokenizer: URI }, { url })).json<DryRun>().spec.data.tokenizer, URI);
  bucket.objects.set('open/large.json', LARGE);
  const large = await ask({ tokenizer: 's3://zoo/open/large.json' }, { url });
  t.strictSame(wrong(large), [`${AT} vocab_too_small`]);
  t.match(large.json<Problem>().errors, [{ message: /^the tokenizer s3:.*large.json has 257 tokens/ }]);
  t.same(await models(), []);
  t.same(await storedKeys(stack, 'models/'), []);

  const before = asked.length;
  const spec = {
    ...smallSpec(`ds_${'0'.repeat(26)}`),
    data: { dataset: `ds_${'0'.repeat(26)}`, tokenizer: URI },
  };
  const estimate = await stack.request({ method: 'POST', url: '/v1/estimate', payload: { spec } });
  t.ok(estimate.json<Estimate>().num_params, estimate.body);
  t.equal(asked.length, before);

  await ask({ tokenizer: URI });
  const [model] = await models();
  const now = (await ask({ tokenizer: URI }, { url })).json<DryRun>();
  t.equal(now.spec.data.tokenizer, model?.id, 'an existing copy is named');
});

t.test('errors are reported at the field, together with all other errors', async (t) => {
  const { bucket, asked, reads, ask, models, stack } = await start(t);
  const put = (name: string, content: Buffer) => bucket.objects.set(`open/${name}`, content);
  put('text.json', Buffer.from('# nothing'));
  put('empty.json', Buffer.from(''));
  put('other.json', Buffer.from('{"model": {"type": "WordLevel", "vocab": {"a": 0}}}'));
  put('twice.json', Buffer.from('{"model": {}, "model": {}}'));
  put('vast.json', Buffer.alloc(64 * 1024 * 1024 + 1));
  const REFUSED: [string, string][] = [
    ['s3://zoo/open/text.json', 'tokenizer_invalid'],
    ['s3://zoo/open/empty.json', 'tokenizer_invalid'],
    ['s3://zoo/open/other.json', 'tokenizer_invalid'],
    ['s3://zoo/open/twice.json', 'tokenizer_invalid'],
    ['s3://zoo/open/vast.json', 'tokenizer_too_large'],
    ['s3://zoo/open/nowhere.json', 'dataset_source_missing'],
    ['s3://zoo/closed/tokenizer.json', 'dataset_uri_refused'],
    ['s3://zoo/open/../closed/tokenizer.json', 'wrong_format'],
  ];
  for (const [tokenizer, code] of REFUSED) {
    const reply = await ask({ tokenizer }, { changes: { train: { steps: 10, micro_batch_size: 5 } } });
    t.match(reply.json<Problem>(), { status: 422, code: 'validation_failed' }, tokenizer);
    const all = [`${AT} ${code}`, '/train/micro_batch_size micro_batch_not_divisor'];
    t.strictSame(wrong(reply)?.sort(), all, tokenizer);
  }
  t.notOk(reads().includes('GetObject vast.json'));
  for (const tokenizer of ['words', 's3:/zoo/open/text.json', 'bytes2'])
    t.strictSame(wrong(await ask({ tokenizer })), [`${AT} wrong_format`], tokenizer);

  const { id } = (
    await stack.request({
      method: 'POST',
      url: '/v1/datasets?name=chats&format=jsonl',
      headers: { 'content-type': 'application/octet-stream' },
      payload: `${JSON.stringify({
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: 'b' },
        ],
      })}\n`,
    })
  ).json<{ id: string }>();
  t.strictSame(wrong(await ask({ dataset: id, tokenizer: URI, chat_template: '{% for %}' })), [
    '/data/chat_template chat_template_invalid',
  ]);
  t.same(await models(), []);
  t.same(await storedKeys(stack, 'models/'), []);

  const before = asked.length;
  const tokens = await stack.request({
    method: 'POST',
    url: '/v1/datasets?name=tokens&format=tokens',
    headers: { 'content-type': 'application/octet-stream' },
    payload: tokenFile(Array.from({ length: 300 }, (_, index) => index % 20)),
  });
  const imported = await ask({ dataset: tokens.json<{ id: string }>().id, tokenizer: URI });
  t.strictSame(wrong(imported), [`${AT} field_without_effect`]);
  t.equal(asked.length, before, 'a tokenizer without effect is not read');
});

t.test('it requires the scope and the storage of a model', async (t) => {
  const { stack, asked, models } = await start(t);
  const { id } = await stack.upload('to be or not to be '.repeat(20));
  const payload = { ...smallSpec(id), data: { dataset: id, tokenizer: URI } };
  const headers = await stack.headersOf('jobs:write', 'datasets');
  for (const url of ['/v1/jobs', '/v1/jobs?dry_run=true']) {
    const reply = await stack.request({ method: 'POST', url, headers, payload });
    t.match(reply.json<Problem>(), { status: 403, code: 'insufficient_scope', detail: /models/ });
  }
  t.same(asked, [], 'a key that may not register models does not learn whether the object exists');
  const quota = { max_jobs: null, max_ranks: null, max_storage_bytes: 10 };
  await stack.store.putQuota('default', quota);
  const ask = () => stack.request({ method: 'POST', url: '/v1/jobs', payload });
  t.match((await ask()).json<Problem>(), { status: 403, code: 'storage_quota_exceeded' });
  t.same(await models(), []);
  await stack.store.putQuota('default', { ...quota, max_storage_bytes: null });
  const { tokenizer } = (await ask()).json<Job>().spec.data;
  const theirs = await stack.request({
    url: `/v1/models/${tokenizer}`,
    headers: await stack.headersIn('others'),
  });
  t.equal(theirs.statusCode, 404);
});

t.test('a repeated request and a fork read nothing', async (t) => {
  const { bucket, stack, asked, ask } = await start(t);
  const first = await ask({ tokenizer: URI }, { key: 'k' });
  t.equal(first.statusCode, 201, first.body);
  const job = first.json<Job>();
  await claimAndTrain(stack.store, job.id, { steps: 2, finish: true });
  bucket.objects.clear();
  const before = asked.length;
  const second = await ask({ tokenizer: URI }, { key: 'k' });
  t.equal(second.headers['idempotent-replayed'], 'true');
  t.equal(second.json<Job>().id, job.id);
  const reused = await ask({ tokenizer: `${URI}2` }, { key: 'k' });
  t.match(reused.json<Problem>(), { status: 422, code: 'idempotency_key_reused' });
  const [checkpoint] = (await stack.store.listCheckpoints(job.id)).data;
  await stack.objects.put(`${checkpoint?.prefix}/${MANIFEST_FILE}`, Buffer.from('{}'));
  const fork = await stack.request({
    method: 'POST',
    url: `/v1/jobs/${job.id}/fork`,
    payload: { from_checkpoint: checkpoint?.id, overrides: { train: { steps: 20 } } },
  });
  t.equal(fork.json<Job>().spec?.data.tokenizer, job.spec.data.tokenizer, fork.body);
  t.equal(asked.length, before);
});

t.test('a failed copy leaves nothing, and the next request repeats it', async (t) => {
  let fail = true;
  const { ask, models, stack } = await start(t, {
    store: (store) => ({
      ...store,
      async putModel(model) {
        if (fail) throw new Error('the record is not written');
        await store.putModel(model);
      },
    }),
  });
  t.equal((await ask({ tokenizer: URI }, { key: 'k' })).statusCode, 500);
  t.same(await models(), []);
  t.same(await storedKeys(stack, 'models/'), []);
  fail = false;
  t.equal((await ask({ tokenizer: URI }, { key: 'k' })).statusCode, 201);
});

t.test('no job starts from a tokenizer, but jobs may use it by its id', async (t) => {
  const { stack, ask } = await start(t);
  const { tokenizer } = (await ask({ tokenizer: URI })).json<Job>().spec.data;
  for (const initFrom of [{ model: tokenizer }, { model: tokenizer, restore: 'full' }]) {
    const reply = await ask({}, { changes: { model: { init_from: initFrom } } });
    t.strictSame(wrong(reply), ['/model/init_from/model model_file_missing']);
  }
  const estimate = await stack.request({
    method: 'POST',
    url: '/v1/estimate',
    payload: { spec: { ...smallSpec(`ds_${'0'.repeat(26)}`), model: { init_from: { model: tokenizer } } } },
  });
  t.strictSame(wrong(estimate), ['/spec/model/init_from/model model_file_missing']);
  t.equal((await ask({ tokenizer })).json<Job>().spec.data.tokenizer, tokenizer);
});

t.test('it survives the loss of the job store and garbage collection', async (t) => {
  const { stack, ask, models } = await start(t);
  const job = (await ask({ tokenizer: URI })).json<Job>();
  const [model] = await models();
  const { store, objects } = stack;
  const keys = await storedKeys(stack, 'models/');
  t.strictSame(keys, [`models/${model?.id}/MODEL.json`, `models/${model?.id}/tokenizer.json`]);
  await stack.redis.forget();
  const unusable: string[] = [];
  const found = await recover({ store, objects, onUnusable: (key) => unusable.push(key) });
  t.match(found, { models: 1, jobs: { queued: 1 }, unusable: 0 }, unusable.join());
  await store.putApiKey(ADMIN_KEY, { name: 'test', scopes: ['admin', 'operator'] });
  t.strictSame(await models(), [model]);
  t.strictSame((await store.getJob(job.id))?.spec, job.spec);
  t.equal((await ask({ tokenizer: URI })).json<Job>().spec.data.tokenizer, model?.id);
  await t.rejects(store.deleteModel(model?.id ?? ''), { code: 'model_in_use' });

  await objects.put(`models/mdl_${'0'.repeat(26)}/tokenizer.json`, SMALL);
  await collectGarbage({ store, objects, grace_ms: 0 });
  t.strictSame(await storedKeys(stack, 'models/'), keys, 'leftovers of an interrupted copy are removed');
});
