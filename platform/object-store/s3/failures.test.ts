/** The S3 store against a misbehaving server; a real server is in store.deep.test.ts. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import t from 'tap';
import { type Answer, fails, hangsUp, standInStore, startFake, succeeds } from '../../testing/fake-s3.js';
import { pattern, rejectsWith } from '../../testing/object-store-checks.js';
import { S3StandIn } from '../../testing/s3-stand-in.js';
import { s3Error } from './errors.js';
import { s3Server } from './server.js';
import { S3Store } from './store.js';

t.test('slow down: retried, then reported', async (t) => {
  const { store, seen } = await startFake(t, [fails(503, 'SlowDown')]);
  const error = await rejectsWith(t, store.put('a', Buffer.from('x')), 'throttled');
  t.equal(error?.retryable, true);
  t.equal(seen.length, 3, 'every attempt was used');
});

t.test('slow down once, then fine', async (t) => {
  const { store, seen } = await startFake(t, [fails(503, 'SlowDown'), succeeds]);
  t.same(await store.put('a', Buffer.from('x')), { bytes: 1 });
  t.equal(seen.length, 2);
});

t.test('no room', async (t) => {
  for (const [status, code] of [
    [507, 'InsufficientStorage'],
    [403, 'QuotaExceeded'],
    [507, 'XMinioStorageFull'],
  ] as const) {
    const { store } = await startFake(t, [fails(status, code)]);
    const error = await rejectsWith(t, store.put('a', Buffer.from('x')), 'disk_full', code);
    t.match(error?.hint, /Free space/);
  }
});

t.test('a server that is down, or hangs up', async (t) => {
  const { store, seen } = await startFake(t, [hangsUp]);
  await rejectsWith(t, store.get('a'), 'object_store_unavailable');
  t.equal(seen.length, 3);
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  const endpoint = 'http://127.0.0.1:1';
  const nowhere = new S3Store({
    bucket: 'tests',
    prefix: '',
    endpoint,
    region: 'x',
    credentials,
    maxAttempts: 1,
  });
  await rejectsWith(t, nowhere.check(), 'object_store_unavailable');
  await nowhere.close();
});

t.test('an internal error of the server is not the caller’s', async (t) => {
  const { store } = await startFake(t, [fails(500, 'InternalError')]);
  await rejectsWith(t, store.get('a'), 'object_store_unavailable');
});

t.test('create-only: an undecided conflict is retried', async (t) => {
  const won = await startFake(t, [fails(409, 'ConditionalRequestConflict'), succeeds]);
  t.same(await won.store.put('a', Buffer.from('x'), { createOnly: true }), { bytes: 1 });
  const lost = await startFake(t, [
    fails(409, 'ConditionalRequestConflict'),
    fails(412, 'PreconditionFailed'),
  ]);
  await rejectsWith(t, lost.store.put('a', Buffer.from('x'), { createOnly: true }), 'precondition_failed');
});

t.test('an abandoned stream releases its connection, also before its first piece', async (t) => {
  let closed: Promise<unknown> = Promise.resolve();
  const begins: Answer = (_request, response) => {
    closed = once(response, 'close');
    response.writeHead(200, { etag: '"1"', 'content-length': '10' });
    response.write('01234');
  };
  const { store } = await startFake(t, [begins]);
  for (const reads of [false, true]) {
    const pieces = (await store.stream('a'))[Symbol.asyncIterator]();
    if (reads) t.equal(String((await pieces.next()).value), '01234');
    await pieces.return?.();
    await closed;
  }
  await rejectsWith(t, store.stream('a', { begin: 0, end: 11 }), 'invalid_range', 'shorter than wanted');
  await closed;
});

t.test('empty objects release their connections, more of them than there are connections', async (t) => {
  const { store } = await startFake(t, [succeeds]);
  for (let i = 0; i < 100; i += 1) t.equal((await store.get('a')).length, 0);
});

t.test('an object that is replaced during a read is an error', async (t) => {
  const half: Answer = (_request, response) => {
    response.writeHead(200, { etag: '"old"', 'content-length': '10' });
    response.write('01234');
    setTimeout(() => response.destroy(), 20);
  };
  const replaced: Answer = (request, response) => {
    t.equal(request.headers['if-match'], '"old"');
    t.equal(request.headers.range, 'bytes=5-9');
    fails(412, 'PreconditionFailed')(request, response);
  };
  const { store } = await startFake(t, [half, replaced]);
  const error = await rejectsWith(t, store.get('a'), 'object_store_unavailable');
  t.match(error?.message, /replaced while it was read/);
});

t.test('errors without a name are mapped by status', async (t) => {
  for (const [status, code] of [
    [401, 'access_denied'],
    [403, 'access_denied'],
    [404, 'object_not_found'],
    [412, 'precondition_failed'],
    [416, 'invalid_range'],
    [429, 'throttled'],
    [507, 'disk_full'],
    [503, 'object_store_unavailable'],
  ] as const) {
    const error = Object.assign(new Error('x'), { $metadata: { httpStatusCode: status } });
    t.equal(s3Error(error, 'a').code, code, String(status));
  }
  const typed = s3Error(new Error('x'), 'a');
  t.equal(s3Error(typed, 'b'), typed, 'a typed error stays as it is');
  const noCredentials = Object.assign(new Error('none'), { name: 'CredentialsProviderError' });
  t.equal(s3Error(noCredentials, 'a').code, 'access_denied');
});

t.test('expired credentials are an error of their own, which a renewal ends', async (t) => {
  const expired = Object.assign(new Error('x'), { Code: 'ExpiredToken', $metadata: { httpStatusCode: 400 } });
  t.match(s3Error(expired, 'a'), { code: 'credentials_unavailable', retryable: true });
});

t.test('create-only: the writer has won if the object is its own, whatever the server said', async (t) => {
  for (const [stored, code] of [
    ['mine', null],
    ['another', 'object_store_unavailable'],
  ] as const) {
    const answers: Answer = (request, response) => {
      if (request.method === 'PUT') return fails(500, 'InternalError')(request, response);
      response.writeHead(200, { etag: '"1"', 'content-length': String(stored.length) });
      response.end(stored);
    };
    const { store } = await startFake(t, [answers]);
    const put = store.put('manifest', Buffer.from('mine'), { createOnly: true });
    if (code === null) t.same(await put, { bytes: 4 });
    else await rejectsWith(t, put, code);
  }
});

t.test('requests name the bucket in the path, or in the host name of the endpoint', async (t) => {
  for (const [endpoint, host, path] of [
    ['https://s3.example.com:9000', 's3.example.com:9000', '/tests/a/b'],
    ['https://{bucket}.s3.example.com:9000', 'tests.s3.example.com:9000', '/a/b'],
  ] as const) {
    const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
    const store = new S3Store({ bucket: 'tests', prefix: 'a', credentials, ...s3Server(endpoint) });
    t.match(new URL(await store.downloadUrl('b', 60)), { host, pathname: path });
    await store.close();
  }
});

t.test('a bucket that requires a checksum of all bytes, as with Object Lock', async (t) => {
  const bucket = new S3StandIn();
  const door = await bucket.open();
  t.teardown(() => door.close());
  const store = standInStore(t, door.endpoint);
  const long = pattern(2500);
  await store.put('long', long);
  await store.put('short', Buffer.from('123456789'));
  await store.put('created', Buffer.from('x'), { createOnly: true });
  await store.put('empty', new Uint8Array());
  t.same(bucket.objects.get('long'), long);
  t.strictSame([...bucket.objects.keys()], ['long', 'short', 'created', 'empty']);
  for await (const { key, etag } of store.list('')) {
    t.match(etag, /^[0-9a-f]{64}$/, 'without quotes');
    t.equal((await store.head(key))?.etag, etag);
  }
  const body = '0123456789';
  const sha256 = createHash('sha256').update(body).digest('base64');
  const { url, headers } = await store.uploadUrl('part', { bytes: body.length, seconds: 60, sha256 });
  const put = async (content: string, sent: Record<string, string>) =>
    (await fetch(url, { method: 'PUT', body: content, headers: sent })).status;
  t.match(new URL(url).searchParams.get('X-Amz-SignedHeaders'), /x-amz-checksum-sha256/);
  t.equal(await put(body, {}), 400, 'without the headers of the URL');
  t.equal(await put('other text', headers), 400, 'other bytes');
  t.equal(await put(body, headers), 200);
  t.equal(String(bucket.objects.get('part')), body);
  const bare = await fetch(`${door.endpoint}/tests/bare`, { method: 'PUT', body: 'x' });
  t.equal(bare.status, 400, 'without one it is refused');
});
