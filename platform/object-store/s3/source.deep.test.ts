/** Reads objects of external buckets on a real server (Ceph's radosgw). */
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import t from 'tap';
import { pattern } from '../../testing/object-store-checks.js';
import { startRadosgw, whyNoRadosgw } from '../../testing/radosgw.js';
import { S3Source } from './source.js';

const MIB = 1024 * 1024;
t.setTimeout(600_000);
const skip = (await whyNoRadosgw()) ?? false;

t.test('objects of a bucket', { skip }, async (t) => {
  const server = await startRadosgw();
  t.teardown(() => server.stop());
  await server.createBucket('texts');
  const { endpoint, region, credentials } = server;
  const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
  t.teardown(() => client.destroy());
  const put = (Key: string, Body: Buffer) =>
    client.send(new PutObjectCommand({ Bucket: 'texts', Key, Body }));
  const source = new S3Source({ endpoint, region, credentials });
  t.teardown(() => source.close());
  const whole = async (pieces: AsyncIterable<Uint8Array>) => {
    const all: Uint8Array[] = [];
    for await (const piece of pieces) all.push(piece);
    return Buffer.concat(all);
  };

  for (const key of ['a.txt', 'Ä b/c+d&e=f.txt', 'a?versionId=x#y', "it's (1)/~x*!.txt"])
    await t.test(`a key as it is: ${key}`, async (t) => {
      await put(key, pattern(1000 + key.length));
      const object = await source.find({ bucket: 'texts', key });
      t.equal(object.bytes, 1000 + key.length);
      t.match(object.etag, /^"[0-9a-f]{32}"$/);
      t.ok((await whole(object.read())).equals(pattern(1000 + key.length)));
    });

  await t.test('an object that changes between or during reads', async (t) => {
    await put('changing', pattern(MIB));
    const before = await source.find({ bucket: 'texts', key: 'changing' });
    await put('changing', pattern(MIB + 1));
    await t.rejects(whole(before.read()), { code: 'dataset_source_changed', message: /texts\/changing/ });
  });

  await t.test('lists the names directly in a folder', async (t) => {
    const names = [
      'config.json',
      'model+1 (a).safetensors',
      ...Array.from({ length: 1005 }, (_, n) => `x${n}`),
    ];
    for (const name of names) await put(`models/tiny/${name}`, pattern(1));
    for (const other of ['models/tiny-2/a', 'models/tiny/deep/a', 'models/a']) await put(other, pattern(1));
    const found = await source.list({ bucket: 'texts', key: 'models/tiny' });
    t.same(found, [...names].sort(), 'also on a second page');
    t.same(await source.list({ bucket: 'texts', key: 'models/none' }), []);
    const nowhere = source.list({ bucket: 'no-such-bucket', key: 'models' });
    await t.rejects(nowhere, { code: 'dataset_source_missing' });
  });

  await t.test('missing and forbidden objects', async (t) => {
    for (const bucket of ['texts', 'no-such-bucket'])
      await t.rejects(source.find({ bucket, key: 'nothing' }), {
        code: 'dataset_source_missing',
        message: new RegExp(`${bucket}/nothing`),
      });
    const unauthorized = new S3Source({
      endpoint,
      region,
      credentials: { accessKeyId: 'unknown-key', secretAccessKey: 'x' },
    });
    t.teardown(() => unauthorized.close());
    await t.rejects(unauthorized.find({ bucket: 'texts', key: 'a.txt' }), { code: 'dataset_source_denied' });
    await t.rejects(unauthorized.list({ bucket: 'texts', key: 'models' }), { message: /s3:ListBucket/ });
  });
});
