/** Datasets copied from objects of a bucket. platform/dataset-sources.test.ts tests which sources are allowed. */
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { type Dataset, datasetKey, type Problem } from '../../../contracts/index.js';
import { DatasetSources } from '../../../platform/dataset-sources.js';
import { type Fate, S3StandIn } from '../../../platform/testing/s3-stand-in.js';
import { ADMIN_KEY, smallSpec, startTestStack } from '../../testing/stack.js';

process.env.AWS_ACCESS_KEY_ID = 'test';
process.env.AWS_SECRET_ACCESS_KEY = 'test';

const TEXT = Buffer.from('to be or not to be, that is the question. '.repeat(20));

async function start(t: Test, fate?: (name: string) => Fate) {
  const bucket = new S3StandIn();
  const door = await bucket.open(fate);
  const allowed = [{ bucket: 'texts', prefix: 'open/' }];
  const sources = new DatasetSources({ allowed, s3Endpoint: door.endpoint });
  const stack = await startTestStack({ sources, limits: { dataset_bytes: 100_000 } });
  t.teardown(async () => {
    await stack.close();
    await sources.close();
    door.close();
  });
  const register = (key: string, more = '') =>
    stack.request({
      method: 'POST',
      url: `/v1/datasets?name=registered&uri=${encodeURIComponent(`s3://texts/${key}`)}${more}`,
    });
  const stored = async () => {
    const keys: string[] = [];
    for await (const { key } of stack.objects.list('')) keys.push(key);
    return keys;
  };
  return { bucket, stack, register, stored };
}

t.test('an object becomes a dataset that is independent of later changes', async (t) => {
  const { bucket, stack, register } = await start(t);
  bucket.objects.set('open/a text.txt', TEXT);
  const reply = await register('open/a text.txt');
  t.equal(reply.statusCode, 201, reply.body);
  const dataset = reply.json<Dataset>();
  t.equal(reply.headers.location, `/v1/datasets/${dataset.id}`);
  t.match(dataset, {
    name: 'registered',
    format: 'text',
    bytes: TEXT.length,
    num_tokens: TEXT.length,
    digest: `sha256:${createHash('sha256').update(TEXT).digest('hex')}`,
    source: { uri: 's3://texts/open/a text.txt', etag: /^"/, bytes: TEXT.length },
  });
  bucket.objects.set('open/a text.txt', Buffer.from('something else'));
  t.ok((await stack.objects.get(datasetKey(dataset.id))).equals(TEXT), 'the copy is not changed');
  t.same((await stack.request({ url: `/v1/datasets/${dataset.id}` })).json(), dataset);
  const job = await stack.request({ method: 'POST', url: '/v1/jobs', payload: smallSpec(dataset.id) });
  t.equal(job.statusCode, 201, job.body);
  t.equal((await stack.upload('uploaded')).source, null);
});

t.test('the content is checked like an upload', async (t) => {
  const { bucket, register, stored } = await start(t);
  bucket.objects.set('open/lines', Buffer.from('{"text": "a"}\n{"text": 3}\n'));
  bucket.objects.set('open/latin', Buffer.from([0x61, 0xff]));
  bucket.objects.set('open/empty', Buffer.alloc(0));
  bucket.objects.set('open/large', Buffer.alloc(100_001, 'a'));
  const REFUSED: [string, string, number, string][] = [
    ['lines', '&format=jsonl', 422, 'dataset_line_invalid'],
    ['latin', '', 422, 'dataset_not_utf8'],
    ['empty', '', 422, 'dataset_empty'],
    ['large', '', 413, 'dataset_too_large'],
    ['nothing', '', 422, 'dataset_source_missing'],
  ];
  for (const [key, more, status, code] of REFUSED) {
    const reply = await register(`open/${key}`, more);
    t.match(reply.json<Problem>(), { status, code }, key);
  }
  t.same(await stored(), []);
});

t.test('dataset URIs outside the allowed buckets, and malformed ones', async (t) => {
  const asked: string[] = [];
  const { bucket, stack, register } = await start(t, (name) => {
    asked.push(name);
    return 'served';
  });
  bucket.objects.set('secret/a', TEXT);
  const refused = await register('secret/a');
  t.match(refused.json<Problem>(), {
    status: 403,
    code: 'dataset_uri_refused',
    detail: /ask an operator to add texts, or a folder of it, to ZEROFLEET_DATASET_BUCKETS/,
  });
  for (const uri of [
    's3://open@127.0.0.1/a',
    's3://texts/open/../secret/a',
    'http://127.0.0.1/open/a',
    's3://texts/',
  ]) {
    const url = `/v1/datasets?name=x&uri=${encodeURIComponent(uri)}`;
    const reply = await stack.request({ method: 'POST', url });
    t.match(
      reply.json<Problem>(),
      { status: 400, code: 'invalid_parameter', errors: [{ pointer: '/query/uri' }] },
      uri,
    );
  }
  t.same(asked, [], 'no server received a request');
});

t.test('both a body and a uri, and neither', async (t) => {
  const { bucket, stack } = await start(t);
  bucket.objects.set('open/a', TEXT);
  const both = await stack.request({
    method: 'POST',
    url: '/v1/datasets?name=x&uri=s3://texts/open/a',
    headers: { 'content-type': 'text/plain' },
    payload: 'text',
  });
  t.match(both.json<Problem>(), { status: 400, code: 'bad_request' });
  const neither = await stack.request({ method: 'POST', url: '/v1/datasets?name=x' });
  t.match(neither.json<Problem>(), { status: 400, code: 'body_required' });
});

t.test('exceeding the storage quota is refused before the object is read', async (t) => {
  const asked: string[] = [];
  const { bucket, stack, register } = await start(t, (name) => {
    asked.push(name);
    return 'served';
  });
  bucket.objects.set('open/a', TEXT);
  await stack.store.putQuota('default', {
    max_jobs: null,
    max_ranks: null,
    max_storage_bytes: TEXT.length - 1,
  });
  t.match((await register('open/a')).json<Problem>(), { status: 403, code: 'storage_quota_exceeded' });
  t.same(asked, ['HeadObject a']);
});

t.test('broken connections are resumed while the object is read', async (t) => {
  let reads = 0;
  const { bucket, register } = await start(t, (name) => {
    if (!name.startsWith('GetObject')) return 'served';
    reads += 1;
    return reads === 1 ? 'cut' : 'served';
  });
  bucket.objects.set('open/a', TEXT);
  t.equal((await register('open/a')).statusCode, 201);
  t.equal(reads, 2);
});

t.test('a client that disconnects leaves nothing, and a silent connection is kept', async (t) => {
  const body = new S3StandIn();
  body.objects.set('open/a', TEXT);
  const door = await body.open();
  t.teardown(() => door.close());
  const real = new DatasetSources({
    allowed: [{ bucket: 'texts', prefix: '' }],
    s3Endpoint: door.endpoint,
  });
  t.teardown(() => real.close());
  const events = new EventEmitter();
  let pauseMs = 10_000;
  const stack = await startTestStack({
    // Long enough for the surrounding steps on a busy machine.
    limits: { idle_connection_ms: 1_500 },
    sources: {
      list: (uri) => real.list(uri),
      async find(uri) {
        const object = await real.find(uri);
        const read = async function* () {
          events.emit('reading');
          await Promise.race([sleep(pauseMs, undefined, { ref: false }), once(events, 'go on')]);
          yield* object.read();
        };
        return { ...object, read };
      },
    },
  });
  t.teardown(() => stack.close());
  const url = `${await stack.listen()}/v1/datasets?name=x&uri=s3://texts/open/a`;
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const leaving = new AbortController();
  const reading = once(events, 'reading');
  const answer = fetch(url, { method: 'POST', headers, signal: leaving.signal });
  answer.catch(() => undefined);
  await reading;
  leaving.abort();
  await t.rejects(answer);
  await sleep(100);
  events.emit('go on');
  await sleep(200);
  t.same((await stack.request({ url: '/v1/datasets' })).json(), { data: [], next_cursor: null });
  pauseMs = 4_500;
  const patient = await fetch(url, { method: 'POST', headers });
  t.equal(patient.status, 201, 'three times the limit of a silent connection');
  await patient.body?.cancel();
});
