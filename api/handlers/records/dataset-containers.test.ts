/** Datasets in other containers than JSONL: they are stored as JSONL, with size and digest of what is stored. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { type Dataset, datasetKey, type Problem, type Upload } from '../../../contracts/index.js';
import { startTestStack } from '../../testing/stack.js';

const OCTETS = { 'content-type': 'application/octet-stream' };
const { files } = JSON.parse(readFileSync('api/contents/rows/golden/parquet.json', 'utf8')) as {
  files: Record<string, { file: string }>;
};
const parquetOf = (name: string) => Buffer.from(files[name]?.file ?? '', 'base64');
const digestOf = (content: Buffer) => `sha256:${createHash('sha256').update(content).digest('hex')}`;

t.test('datasets in containers', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const upload = (payload: Buffer, format = 'jsonl') =>
    stack.request({
      method: 'POST',
      url: `/v1/datasets?name=x&format=${format}`,
      headers: OCTETS,
      payload,
    });

  const storedKeys = async () => {
    const keys: string[] = [];
    for await (const object of stack.objects.list('')) keys.push(object.key);
    return keys;
  };

  const lines = Buffer.from('{"text": "a"}\n{"text": "b"}\n');
  const packed = gzipSync(lines);

  t.test('compressed content is stored without its compression', async (t) => {
    for (const [format, content] of [
      ['jsonl', lines],
      ['text', Buffer.from('a text')],
    ] as const) {
      const reply = await upload(gzipSync(content), format);
      t.equal(reply.statusCode, 201, reply.body);
      const dataset = reply.json<Dataset>();
      t.match(dataset, { format, bytes: content.length, digest: digestOf(content), source: null });
      t.same(await stack.objects.get(datasetKey(dataset.id)), content);
    }
    t.match((await upload(packed.subarray(0, -4))).json<Problem>(), {
      status: 422,
      code: 'dataset_compression_invalid',
    });
    const line = await upload(gzipSync('{"text": "a"}\n{"text": 3}\n'));
    t.match(line.json<Problem>(), { code: 'dataset_line_invalid', detail: /^line 2: "text" must/ });
  });

  const contents: [string, Buffer, string][] = [
    ['CSV', Buffer.from('\uFEFFid,text\r\n1,"a\r\nb"\r\n2,c\r\n'), '{"text": "a\\r\\nb"}\n{"text": "c"}\n'],
    ['compressed CSV', gzipSync('text\na\n'), '{"text": "a"}\n'],
    ['a JSON array', Buffer.from('[{"text": "a"},\n{"text": "b"}]'), ' {"text": "a"}\n {"text": "b"} \n'],
    ['Parquet', parquetOf('packed by zstd'), '{"text": "row 0 é"}\n'],
  ];
  for (const [name, content, stored] of contents)
    t.test(`${name} is stored as JSONL`, async (t) => {
      const before = await storedKeys();
      const reply = await upload(content);
      t.equal(reply.statusCode, 201, reply.body);
      const dataset = reply.json<Dataset>();
      const found = await stack.objects.get(datasetKey(dataset.id));
      t.ok(found.toString().startsWith(stored), found.toString());
      t.match(dataset, { format: 'jsonl', bytes: found.length, digest: digestOf(found) });
      t.equal(dataset.num_documents, found.toString().trim().split('\n').length);
      t.equal((await storedKeys()).length, before.length + 2, 'content and document remain');
    });

  const refused: [string, Buffer, string, RegExp][] = [
    ['a row of CSV', Buffer.from('text\na\n"b\n\n'), 'dataset_line_invalid', /^line 3: a quoted cell has no/],
    ['CSV without a row', Buffer.from('text,label\n'), 'dataset_empty', /has no row/],
    ['an item', Buffer.from('[{"text": "a"}, {"text": 3}]'), 'dataset_line_invalid', /^item 2: "text" must/],
    ['an empty array', Buffer.from('[]'), 'dataset_empty', /./],
    [
      'truncated Parquet',
      parquetOf('packed by zstd').subarray(0, -20),
      'dataset_parquet_invalid',
      /does not end with PAR1; it may be truncated/,
    ],
  ];
  for (const [name, content, code, detail] of refused)
    t.test(`refused without leftovers: ${name}`, async (t) => {
      const before = await storedKeys();
      t.match((await upload(content)).json<Problem>(), { status: 422, code, detail });
      t.same(await storedKeys(), before);
    });

  t.test('an upload in parts announces size and digest of what it sends', async (t) => {
    const inParts = async (digest: string) => {
      const payload = { name: 'x', format: 'jsonl', bytes: packed.length, digest };
      const { id } = (await stack.request({ method: 'POST', url: '/v1/uploads', payload })).json<Upload>();
      const part = {
        method: 'PUT',
        url: `/v1/uploads/${id}/parts/1`,
        headers: OCTETS,
        payload: packed,
      } as const;
      t.equal((await stack.request(part)).statusCode, 204);
      return stack.request({ method: 'POST', url: `/v1/uploads/${id}/complete` });
    };
    t.match((await inParts(digestOf(packed))).json<Dataset>(), {
      bytes: lines.length,
      digest: digestOf(lines),
      num_documents: 2,
    });
    t.match((await inParts(digestOf(lines))).json<Problem>(), { code: 'upload_digest_mismatch' });
  });
});
