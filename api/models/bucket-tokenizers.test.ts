import t, { type Test } from 'tap';
import { TINY_TOKENIZER } from '../../formats/testing/models.js';
import { startTestInspector } from '../testing/inspector.js';
import { BucketTokenizers } from './bucket-tokenizers.js';

const URI = 's3://zoo/words.json';
const GOOD = JSON.stringify(TINY_TOKENIZER);

/** A bucket with one object, and a count of its reads. */
function bucketOf(t: Test, content: string, etag: string) {
  const bucket = { content, etag, reads: 0, broken: false };
  const find = async (uri: string) => ({
    uri,
    bytes: bucket.content.length,
    etag: bucket.etag,
    async *read() {
      bucket.reads += 1;
      if (bucket.broken) throw new Error('cut');
      yield Buffer.from(bucket.content);
    },
  });
  const known = new BucketTokenizers({ find }, startTestInspector(t));
  const tokenizers = { find: (uri: string) => known.find(uri, 'default') };
  return { bucket, tokenizers };
}

t.test('an unchanged object is read once', async (t) => {
  const { bucket, tokenizers } = bucketOf(t, GOOD, '"1"');
  const [first, second] = await Promise.all([tokenizers.find(URI), tokenizers.find(URI)]);
  t.match(first, { tokenizer: { vocab_size: 27, chat_template: null }, source: { uri: URI } });
  t.equal(bucket.reads, 1);
  const elsewhere = await tokenizers.find('s3://zoo/others.json');
  t.equal(elsewhere.digest, first.digest, 'the digest is of the content');
  t.equal(bucket.reads, 2);
  Object.assign(bucket, { content: `${GOOD}\n`, etag: '"2"' });
  const changed = await tokenizers.find(URI);
  t.not(changed.digest, second.digest);
  t.not(changed.source.version, second.source.version);
  t.equal(bucket.reads, 3);
});

t.test('an object without an ETag is read each time', async (t) => {
  const { bucket, tokenizers } = bucketOf(t, GOOD, '');
  t.strictSame((await tokenizers.find(URI)).source, { uri: URI });
  await tokenizers.find(URI);
  t.equal(bucket.reads, 2);
});

t.test('failures are not cached', async (t) => {
  const { bucket, tokenizers } = bucketOf(t, '{"model": 1}', '"1"');
  for (let i = 0; i < 2; i += 1) await t.rejects(tokenizers.find(URI), { code: 'tokenizer_invalid' });
  Object.assign(bucket, { content: GOOD, broken: true });
  await t.rejects(tokenizers.find(URI), { message: 'cut' });
  bucket.broken = false;
  t.ok(await tokenizers.find(URI));
});

t.test('the cache is bounded', async (t) => {
  const { bucket, tokenizers } = bucketOf(t, GOOD, '"1"');
  for (let i = 0; i <= 1000; i += 1) await tokenizers.find(`s3://zoo/${i}.json`);
  const before = bucket.reads;
  await tokenizers.find('s3://zoo/1000.json');
  t.equal(bucket.reads, before);
  await tokenizers.find('s3://zoo/0.json');
  t.equal(bucket.reads, before + 1, 'the oldest entry is evicted');
});
