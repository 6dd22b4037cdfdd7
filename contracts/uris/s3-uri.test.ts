import t from 'tap';
import { isBucketName, parseS3Uri } from './s3-uri.js';

t.test('valid object URIs', async (t) => {
  t.same(parseS3Uri('s3://my-data/a.txt'), { bucket: 'my-data', key: 'a.txt' });
  t.same(parseS3Uri('s3://my.data/a b/ä?x#y@z:1.txt'), { bucket: 'my.data', key: 'a b/ä?x#y@z:1.txt' });
  t.same(parseS3Uri(`s3://abc/${'k'.repeat(1024)}`).key.length, 1024);
});

const REFUSED: [string, RegExp][] = [
  ['', /not of the form/],
  ['my-data/a.txt', /not of the form/],
  ['S3://my-data/a.txt', /not of the form/],
  ['https://my-data/a.txt', /not of the form/],
  ['file:///etc/passwd', /not of the form/],
  [' s3://my-data/a.txt', /not of the form/],
  ['s3://', /not of the form/],
  ['s3:///a.txt', /not of the form/],
  ['s3://my-data', /no key/],
  ['s3://my-data/', /no key/],
  ['s3://user:password@my-data/a', /not of the form/],
  ['s3://my-data:8080/a', /not of the form/],
  ['s3://my-data?x/a', /not of the form/],
  ['s3://127.0.0.1/a', /not of the form/],
  ['s3://169.254.169.254/latest/meta-data', /not of the form/],
  ['s3://[::1]/a', /not of the form/],
  ['s3://My-Data/a', /not of the form/],
  ['s3://my..data/a', /not of the form/],
  ['s3://../a', /not of the form/],
  ['s3://my%2ddata/a', /not of the form/],
  ['s3://arn:aws:s3:::my-data/a', /not of the form/],
  ['s3://my-data\\evil/a', /not of the form/],
  ['s3://mу-data/a', /not of the form/],
  ['s3://my-data//a', /empty part/],
  ['s3://my-data/a/', /empty part/],
  ['s3://my-data/../other/a', /'\.\.'/],
  ['s3://my-data/a/../../other/a', /'\.\.'/],
  ['s3://my-data/./a', /'\.'/],
  ['s3://my-data/%2e%2e/other/a', /percent/],
  ['s3://my-data/..\\other', /backslash/],
  ['s3://my-data/a\nHost: evil', /control/],
  ['s3://my-data/a\u0000', /control/],
  ['s3://my-data/\ud800', /surrogate/],
  [`s3://my-data/${'ä'.repeat(513)}`, /1024 bytes/],
];
for (const [text, message] of REFUSED)
  t.test(`refused: ${JSON.stringify(text.slice(0, 40))}`, async (t) => {
    t.throws(() => parseS3Uri(text), { message });
  });

t.test('bucket names', async (t) => {
  for (const name of ['abc', 'a-b', 'a.b.c', '1234', 'x'.repeat(63)]) t.ok(isBucketName(name), name);
  for (const name of ['ab', 'x'.repeat(64), '-abc', 'abc.', 'a_b', '10.0.0.1', 'a..b'])
    t.notOk(isBucketName(name), name);
});
