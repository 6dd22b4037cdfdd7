// Buckets in other regions, with a server that answers like AWS; a real server is in source.deep.test.ts.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { S3Source } from './source.js';

/** Serves an object only in the region of its bucket; the bucket `lost` always refers to another region. */
async function startRegions(t: Test, status: 301 | 400, region: string) {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    const asked = /Credential=[^/]+\/\d+\/([^/]+)/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    seen.push(`${request.method} ${asked}`);
    const lost = request.url?.startsWith('/lost');
    if (asked !== region || lost) {
      const body =
        request.method === 'HEAD' ? '' : '<?xml version="1.0"?><Error><Code>PermanentRedirect</Code></Error>';
      response.writeHead(status, { 'x-amz-bucket-region': lost ? `${asked.slice(0, -1)}2` : region });
      response.end(body);
    } else if (request.url?.includes('list-type')) {
      response.end(
        '<?xml version="1.0"?><ListBucketResult><Contents><Key>a/x</Key></Contents></ListBucketResult>',
      );
    } else {
      response.writeHead(200, { 'content-length': '4', etag: '"1"' });
      response.end(request.method === 'HEAD' ? '' : 'text');
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const source = new S3Source({
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    region: 'us-east-1',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    maxAttempts: 1,
  });
  t.teardown(() => {
    source.close();
    server.closeAllConnections();
    server.close();
  });
  return { source, seen };
}

for (const status of [301, 400] as const)
  t.test(`a bucket in another region is read there, after ${status}`, async (t) => {
    const { source, seen } = await startRegions(t, status, 'eu-central-1');
    const found = await source.find({ bucket: 'far', key: 'a/x' });
    t.equal(found.bytes, 4);
    const pieces: Uint8Array[] = [];
    for await (const piece of found.read()) pieces.push(piece);
    t.equal(String(Buffer.concat(pieces)), 'text');
    t.strictSame(await source.list({ bucket: 'far', key: 'a' }), ['x']);
    t.strictSame(seen, ['HEAD us-east-1', 'HEAD eu-central-1', 'GET eu-central-1', 'GET eu-central-1']);
    t.strictSame(await source.list({ bucket: 'other', key: 'a' }), ['x']);
  });

t.test('a bucket without a valid region is an error after one more attempt', async (t) => {
  const { source, seen } = await startRegions(t, 301, 'eu-central-1');
  await t.rejects(source.find({ bucket: 'lost', key: 'a/x' }), /lost/);
  t.equal(seen.length, 2);
  const odd = await startRegions(t, 301, 'eu.evil.example/');
  await t.rejects(odd.source.find({ bucket: 'far', key: 'a/x' }), /far/);
  t.equal(odd.seen.length, 1);
});
