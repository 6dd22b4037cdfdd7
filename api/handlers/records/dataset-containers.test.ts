/** Datasets in other containers than JSONL: they are stored as JSONL, with size and digest of what is stored. */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { type Dataset, datasetKey, type Problem, type Upload } from '../../../contracts/index.js';
import { startTestStack } from '../../testing/stack.js';

const OCTETS = { 'content-type': 'application/octet-stream' };
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
