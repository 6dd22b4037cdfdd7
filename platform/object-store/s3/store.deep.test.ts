/** The S3 store against a real server (Ceph's radosgw). Misbehaving servers are in failures.test.ts. */
import { createHash } from 'node:crypto';
import { CreateMultipartUploadCommand, ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3';
import t, { type Test } from 'tap';
import { startCutProxy } from '../../testing/cut-proxy.js';
import { pattern, rejectsWith } from '../../testing/object-store-checks.js';
import { objectStoreConformance } from '../../testing/object-store-conformance.js';
import { startRadosgw, type TestS3, whyNoRadosgw } from '../../testing/radosgw.js';
import { S3Store, type S3StoreOptions } from './store.js';

const MIB = 1024 * 1024;
const LIMITS = { partBytes: 5 * MIB, parallelParts: 3 };

// Installing the server may take minutes.
t.setTimeout(600_000);
const skip = (await whyNoRadosgw()) ?? false;

t.test('against radosgw', { skip }, async (t) => {
  const server = await startRadosgw();
  t.teardown(() => server.stop());
  await server.createBucket('tests');
  let stores = 0;
  const open = (options: Partial<S3StoreOptions> = {}) => {
    stores += 1;
    return openAt(server, { prefix: `some/prefix-${stores}`, ...options });
  };

  await t.test('conformance', (t) =>
    objectStoreConformance(t, { open: async () => open(), longBytes: 6 * MIB }),
  );
  await t.test('conformance without a prefix', async (t) => {
    await server.createBucket('whole-bucket');
    const store = open({ bucket: 'whole-bucket', prefix: '' });
    await store.put('a/b', Buffer.from('x'));
    const keys: string[] = [];
    for await (const { key } of store.list('a/')) keys.push(key);
    t.same(keys, ['a/b']);
    t.equal(store.url, 's3://whole-bucket/');
  });
  await t.test('a temporary URL to read one object', async (t) => {
    const store = open();
    await store.put('a/secret_weights', Buffer.from('0123456789'));
    await store.put('a/other', Buffer.from('other'));
    const url = await store.downloadUrl('a/secret_weights', 60);
    t.equal(await (await fetch(url)).text(), '0123456789');
    const part = await fetch(url, { headers: { range: 'bytes=7-' } });
    t.equal(part.status, 206);
    t.equal(await part.text(), '789');
    t.equal((await fetch(url.replace('secret_weights', 'other'))).status, 403, 'of no other object');
    t.equal((await fetch(url, { method: 'PUT', body: 'x' })).status, 403, 'nor for writing');
    t.equal((await fetch(url, { method: 'DELETE' })).status, 403);
    t.equal(
      (await fetch(url.replace('X-Amz-Expires=60', 'X-Amz-Expires=6000'))).status,
      403,
      'nor for longer',
    );
    const short = await store.downloadUrl('a/secret_weights', 1);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    t.equal((await fetch(short)).status, 403);
    await t.rejects(store.downloadUrl('../escape', 60), { code: 'invalid_key' });
    await store.close();
  });
  await t.test('a temporary URL to write one object, with its size', async (t) => {
    const store = open();
    const terms = { bytes: 10, seconds: 60, sha256: null };
    const { url } = await store.uploadUrl('a/part', terms);
    const put = async (to: string, body: string) => (await fetch(to, { method: 'PUT', body })).status;
    t.equal(await put(url, '01234567890'), 403, 'of no other size');
    t.equal(await store.head('a/part'), null);
    t.equal(await put(url, '0123456789'), 200);
    t.equal(Buffer.from(await store.get('a/part')).toString(), '0123456789');
    t.equal(await put(url, 'abcdefghij'), 200, 'again');
    t.equal(await put(url.replace('part', 'other'), '0123456789'), 403, 'of no other object');
    t.equal((await fetch(url)).status, 403, 'nor for reading');
    await t.rejects(store.uploadUrl('../escape', terms), { code: 'invalid_key' });
    const sha256 = createHash('sha256').update('0123456789').digest('base64');
    const sealed = await store.uploadUrl('a/sealed', { ...terms, sha256 });
    const send = async (body: string, headers: Record<string, string>) =>
      (await fetch(sealed.url, { method: 'PUT', body, headers })).status;
    t.equal(await send('0123456789', {}), 403, 'without the checksum');
    t.equal(await send('0123456789', sealed.headers), 200);
    t.equal(Buffer.from(await store.get('a/sealed')).toString(), '0123456789');
    await store.close();
  });
  await t.test('missing bucket', (t) => everyCallFails(t, open({ bucket: 'nowhere' }), 'bucket_not_found'));
  await t.test('unknown access key', (t) => {
    const credentials = { accessKeyId: 'unknown-key', secretAccessKey: 'x' };
    return everyCallFails(t, open({ credentials }), 'access_denied');
  });
  await t.test('wrong secret', (t) => {
    const credentials = { ...server.credentials, secretAccessKey: 'wrong' };
    return everyCallFails(t, open({ credentials }), 'access_denied');
  });

  await t.test('uploads of dead processes are aborted, others are not', async (t) => {
    const store = open({ prefix: 'dead' });
    const client = clientOf(server);
    t.teardown(() => client.destroy());
    const begin = (Key: string) => client.send(new CreateMultipartUploadCommand({ Bucket: 'tests', Key }));
    await begin('dead/jobs/1/shard-0');
    await begin('dead/jobs/1/shard-1');
    const { UploadId } = await begin('dead/jobs/2/shard-0');
    const hourMs = 3_600_000;
    const before = (ms: number) => ({ began_before: new Date(Date.now() + ms) });
    t.equal(await store.abandonUploads('jobs/1/', before(-hourMs)), 0, 'they may be in progress');
    t.equal(await store.abandonUploads('jobs/1/', { ...before(hourMs), only_count: true }), 2);
    t.equal(await store.abandonUploads('jobs/1/', before(hourMs)), 2);
    t.equal(await store.abandonUploads('jobs/1/'), 0);
    const left = await client.send(new ListMultipartUploadsCommand({ Bucket: 'tests', Prefix: 'dead/' }));
    t.same(
      left.Uploads?.map((upload) => upload.UploadId),
      [UploadId],
    );
    t.equal(await store.abandonUploads(''), 1);
    await store.put('jobs/1/after', pattern(6 * MIB));
    t.equal((await store.head('jobs/1/after'))?.bytes, 6 * MIB);
  });

  await t.test('the server detects a flipped bit', async (t) => {
    const proxy = await startCutProxy(server.host, server.port);
    t.teardown(() => proxy.close());
    const store = open({ endpoint: proxy.endpoint });
    const content = pattern(12 * MIB);
    const bodies = { whole: content.subarray(0, 3 * MIB), parts: content };
    for (const [title, body] of Object.entries(bodies)) {
      proxy.flip(2 * MIB);
      const error = await rejectsWith(t, store.put(title, body), 'object_store_unavailable', title);
      t.match(error?.message, /ContentSHA256Mismatch/);
      t.equal(await store.head(title), null);
      await store.put(title, body);
      t.same(await store.get(title), Buffer.from(body), 'intact after a retry');
    }
    t.same(await openUploads(server), [], 'no parts are left');
  });

  await t.test('a connection that breaks', async (t) => {
    const proxy = await startCutProxy(server.host, server.port);
    t.teardown(() => proxy.close());
    const store = open({ endpoint: proxy.endpoint });
    const content = pattern(12 * MIB);

    proxy.cut('up', 2 * MIB, 1);
    await store.put('up', content);
    t.same(await store.get('up'), content, 'a part whose connection broke is sent again');
    t.equal(proxy.cuts, 1);

    proxy.cut('down', 3 * MIB, 3);
    t.same(await store.get('up'), content, 'a body that broke off three times is resumed');
    t.equal(proxy.cuts, 4);
    proxy.cut('down', MIB, 2);
    const range = { begin: MIB + 1, end: 5 * MIB };
    t.same(await store.get('up', range), content.subarray(range.begin, range.end));

    // The object is stored, but the answer is lost and the writer retries.
    proxy.cut('down', 10, 1);
    await store.put('manifest', Buffer.from('mine'), { createOnly: true });
    t.equal(String(await store.get('manifest')), 'mine', 'a lost answer does not make the winner a loser');
    proxy.cut('down', 10, 1);
    await rejectsWith(
      t,
      store.put('manifest', Buffer.from('another'), { createOnly: true }),
      'precondition_failed',
      'nor a loser the winner',
    );

    proxy.cut('up', 2 * MIB, 1000);
    await rejectsWith(t, store.put('never', content), 'object_store_unavailable');
    await rejectsWith(t, store.put('up', content), 'object_store_unavailable');
    proxy.cut('up', 0, 0);
    t.equal(await store.head('never'), null);
    t.same(await store.get('up'), content, 'what was there before is still there');
    t.same(await openUploads(server), [], 'no parts are left');
  });
});

async function everyCallFails(t: Test, store: S3Store, code: string): Promise<void> {
  await rejectsWith(t, store.put('a', pattern(1)), code, 'put');
  await rejectsWith(t, store.put('a', pattern(6 * MIB)), code, 'put in parts');
  await rejectsWith(t, store.put('a', pattern(1), { createOnly: true }), code, 'create');
  await rejectsWith(t, store.get('a'), code, 'get');
  await rejectsWith(t, store.head('a'), code, 'head');
  await rejectsWith(t, store.list('')[Symbol.asyncIterator]().next(), code, 'list');
  await rejectsWith(t, store.delete(['a']), code, 'delete');
  await rejectsWith(t, store.check(), code, 'check');
}

function openAt(server: TestS3, options: Partial<S3StoreOptions>): S3Store {
  const { endpoint, region, credentials } = server;
  return new S3Store({
    bucket: 'tests',
    prefix: '',
    endpoint,
    region,
    credentials,
    limits: LIMITS,
    ...options,
  });
}

function clientOf({ endpoint, region, credentials }: TestS3): S3Client {
  return new S3Client({ endpoint, region, credentials, forcePathStyle: true });
}

async function openUploads(server: TestS3): Promise<unknown[]> {
  const client = clientOf(server);
  const { Uploads } = await client.send(new ListMultipartUploadsCommand({ Bucket: 'tests' }));
  client.destroy();
  return Uploads ?? [];
}
