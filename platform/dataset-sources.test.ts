/**
 * Tests which objects may be requested, and that a URI cannot make the server contact another host. A real
 * server is in object-store/s3/source.deep.test.ts.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { bucketList } from './config/config-values.js';
import { DatasetSources, refuseOwnStore } from './dataset-sources.js';

process.env.AWS_ACCESS_KEY_ID = 'test';
process.env.AWS_SECRET_ACCESS_KEY = 'test';
process.env.AWS_REGION = 'us-east-1';

/** Starts a server on loopback that records its requests. */
async function listen(t: Test, answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.headers.host} ${request.url}`);
    answer(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { asked, host, url: `http://${host}` };
}

const found = (_: IncomingMessage, response: ServerResponse) =>
  void response.writeHead(200, { 'content-length': '5', etag: '"e"' }).end();

function sourcesAt(t: Test, s3Endpoint: string, buckets: string) {
  const sources = new DatasetSources({ allowed: bucketList(buckets), s3Endpoint });
  t.teardown(() => sources.close());
  return sources;
}

t.test('only objects allowed by the operator are requested', async (t) => {
  const server = await listen(t, found);
  const sources = sourcesAt(t, server.url, 'open, mine/texts/, mine/more/deep');
  for (const uri of ['s3://open/a', 's3://open/a/b', 's3://mine/texts/a', 's3://mine/more/deep/a'])
    t.match(await sources.find(uri), { bytes: 5, etag: '"e"' }, uri);
  t.same(
    server.asked,
    ['open/a', 'open/a/b', 'mine/texts/a', 'mine/more/deep/a'].map((path) => `HEAD ${server.host} /${path}`),
  );
  const REFUSED = [
    's3://other/a',
    's3://openx/a',
    's3://open.evil.example/a',
    's3://mine/a',
    's3://mine/texts',
    's3://mine/textsx/a',
    's3://mine/more/a',
    's3://mine/Texts/a',
  ];
  for (const uri of REFUSED)
    await t.rejects(
      sources.find(uri),
      { code: 'dataset_uri_refused', message: /ZEROFLEET_DATASET_BUCKETS/ },
      uri,
    );
  const none = sourcesAt(t, server.url, 'none');
  await t.rejects(none.find('s3://open/a'), { code: 'dataset_uri_refused' });
  t.equal(server.asked.length, 4, 'no other request was sent');
});

t.test('SSRF by dataset URI: only the endpoint is contacted', async (t) => {
  const inner = await listen(t, found);
  const server = await listen(t, found);
  // Invalid bucket names are refused in an operator's list, too.
  for (const list of [inner.host, '127.0.0.1', 'a..b', '../x', 'open/../x', 'open//x', 'a', 'http://open'])
    t.throws(() => bucketList(list), { message: /must be none or buckets/ }, list);
  const sources = sourcesAt(t, server.url, 'open');
  const HOSTILE = [
    `s3://${inner.host}/a`,
    `s3://open@${inner.host}/a`,
    `s3://open:x@${inner.host}/a`,
    `s3://open#@${inner.host}/a`,
    `s3://open\\@${inner.host}/a`,
    `http://${inner.host}/open/a`,
    `s3://open/a\r\nHost: ${inner.host}`,
    's3://open/../other/a',
    's3://open/x/../../other/a',
    's3://open/%2e%2e/other/a',
    's3://169.254.169.254/latest/meta-data',
  ];
  for (const uri of HOSTILE) await t.rejects(sources.find(uri), { code: 'invalid_parameter' }, uri);
  t.same(server.asked, []);
  // These are ordinary keys in spite of their form.
  for (const uri of [
    `s3://open/@${inner.host}/a`,
    `s3://open/http:/${inner.host}`,
    's3://open/a?versionId=x#y',
  ])
    await sources.find(uri);
  t.ok(
    server.asked.every((line) => line.startsWith(`HEAD ${server.host} /open/`)),
    server.asked.join('\n'),
  );
  t.match(server.asked.at(-1), /\/open\/a%3FversionId%3Dx%23y$/);
  t.same(inner.asked, []);
});

t.test('redirects are not followed', async (t) => {
  const inner = await listen(t, found);
  for (const status of [301, 302, 303, 307, 308]) {
    const server = await listen(t, (_, response) =>
      response.writeHead(status, { location: `${inner.url}/open/a` }).end(),
    );
    await t.rejects(
      sourcesAt(t, server.url, 'open').find('s3://open/a'),
      { code: 'object_store_unavailable' },
      String(status),
    );
  }
  t.same(inner.asked, []);
});

t.test('the object store itself is never an allowed source', async (t) => {
  const overlaps: [string, string][] = [
    ['mine', 's3://mine/zerofleet'],
    ['mine', 's3://mine'],
    ['mine/zerofleet', 's3://mine/zerofleet/'],
    ['mine/zerofleet/datasets', 's3://mine/zerofleet'],
    ['mine/a', 's3://mine/a/b'],
    ['mine/a', 's3://mine/'],
  ];
  for (const [list, url] of overlaps)
    t.throws(
      () => refuseOwnStore(bucketList(list), url),
      { code: 'invalid_configuration' },
      `${list} ${url}`,
    );
  const apart: [string, string][] = [
    ['mine/data', 's3://mine/zerofleet'],
    ['mine/zero', 's3://mine/zerofleet'],
    ['other', 's3://mine'],
    ['mine', 'file:///mine'],
  ];
  for (const [list, url] of apart)
    t.doesNotThrow(() => refuseOwnStore(bucketList(list), url), `${list} ${url}`);
});
