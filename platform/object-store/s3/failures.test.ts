/** The S3 store against a misbehaving server; a real server is in store.deep.test.ts. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { pattern, rejectsWith } from '../../testing/object-store-checks.js';
import { S3StandIn } from '../../testing/s3-stand-in.js';
import { s3Error } from './errors.js';
import { s3Server } from './server.js';
import { S3Store } from './store.js';
import { limitsFor, type UploadLimits } from './upload.js';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Starts a server with the given answers in order; the last answer repeats. */
async function startFake(t: Test, answers: Answer[], limits?: UploadLimits) {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    const answer = answers[Math.min(seen.length, answers.length - 1)] as Answer;
    seen.push(`${request.method} ${request.url}`);
    request.resume().on('end', () => answer(request, response));
  });
  // Idle connections stay open.
  server.keepAliveTimeout = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  const store = new S3Store({
    bucket: 'tests',
    prefix: '',
    endpoint,
    region: 'us-east-1',
    credentials,
    maxAttempts: 3,
    ...(limits && { limits }),
  });
  t.teardown(() => store.close());
  return { store, seen };
}

function standInStore(t: Test, endpoint: string): S3Store {
  const store = new S3Store({
    bucket: 'tests',
    prefix: '',
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    limits: { partBytes: 1000, parallelParts: 2 },
  });
  t.teardown(() => store.close());
  return store;
}

function fails(status: number, code: string): Answer {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/xml' });
    response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`);
  };
}

const succeeds: Answer = (_request, response) => {
  response.writeHead(200, { etag: '"1"' });
  response.end();
};

const hangsUp: Answer = (request) => request.socket.destroy();

const startsUpload: Answer = (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/xml' });
  response.end(
    '<?xml version="1.0"?><InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>',
  );
};

const refusesParts: Answer = (request, response) => {
  const refuses = fails(403, 'AccessDenied');
  const answer = { POST: startsUpload, PUT: refuses }[request.method ?? ''] ?? succeeds;
  answer(request, response);
};

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

t.test('a failed part aborts the upload', async (t) => {
  const { store, seen } = await startFake(t, [refusesParts]);
  await rejectsWith(t, store.put('a', Buffer.alloc(20 * 1024 * 1024)), 'access_denied');
  t.match(seen.at(-1), /^DELETE \/tests\/a\?.*uploadId=u1/, 'its parts are aborted');
  t.notOk(
    seen.some((request) => request.startsWith('POST') && request.includes('uploadId')),
    'and not completed',
  );
});

for (const [refused, answer] of [
  ['its beginning', fails(403, 'AccessDenied')],
  ['its first part', refusesParts],
] as const)
  t.test(`the body's producer is closed when ${refused} of an upload is refused`, async (t) => {
    const { store } = await startFake(t, [answer], { partBytes: 1000, parallelParts: 1 });
    let freed = false;
    async function* body() {
      try {
        for (;;) yield pattern(1000);
      } finally {
        freed = true;
      }
    }
    await rejectsWith(t, store.put('a', body()), 'access_denied');
    t.ok(freed);
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

t.test('a completed upload whose answer was lost has succeeded', async (t) => {
  const bucket = new S3StandIn();
  let lose = true;
  const door = await bucket.open((name) => {
    if (!lose || !name.startsWith('CompleteMultipartUpload')) return 'served';
    lose = false;
    return 'mute';
  });
  t.teardown(() => door.close());
  const store = standInStore(t, door.endpoint);
  const long = pattern(2500);
  t.same(await store.put('long', long), { bytes: 2500 });
  t.same(bucket.objects.get('long'), long);
  t.notOk(lose, 'an answer was lost');
});

t.test('an upload whose completion failed has succeeded if the object has its parts', async (t) => {
  const stored =
    (bytes: number, etag: string): Answer =>
    (_request, response) => {
      response.writeHead(200, { 'content-length': String(bytes), etag });
      response.end();
    };
  // ETag of empty parts, as this server reports them: each is the MD5 of nothing.
  const empty = createHash('md5').digest();
  const part = `"${empty.toString('hex')}"`;
  const whole = createHash('md5')
    .update(Buffer.concat([empty, empty, empty]))
    .digest('hex');
  const gone = fails(404, 'NoSuchUpload');
  const none = fails(404, 'NoSuchKey');
  const these_parts = stored(2500, `"${whole}-3"`);
  const other_etag = stored(2500, '"x"');
  const cases: [string, Answer, Answer, string | null][] = [
    ['gone: no object', gone, none, 'object_not_found'],
    ['gone: another size', gone, stored(7, `"${whole}-3"`), 'object_not_found'],
    ['gone: other parts', gone, stored(2500, `"${'0'.repeat(32)}-3"`), 'object_not_found'],
    ['gone: more parts', gone, stored(2500, `"${whole}-4"`), 'object_not_found'],
    ['gone: these parts', gone, these_parts, null],
    ['gone: an ETag of another kind', gone, other_etag, null],
    ['500: no object', fails(500, 'InternalError'), none, 'object_store_unavailable'],
    ['500: these parts', fails(500, 'InternalError'), these_parts, null],
    ['500: perhaps an older object', fails(500, 'InternalError'), other_etag, 'object_store_unavailable'],
    ['no answer: these parts', hangsUp, these_parts, null],
    ['refused', fails(403, 'AccessDenied'), these_parts, 'access_denied'],
  ];
  for (const [what, end, head, code] of cases) {
    const answers: Answer = (request, response) => {
      if (request.method === 'HEAD') return head(request, response);
      if (request.method === 'PUT') return stored(0, part)(request, response);
      const ends = request.method === 'POST' && request.url?.includes('uploadId');
      return (ends ? end : startsUpload)(request, response);
    };
    const { store } = await startFake(t, [answers], { partBytes: 1000, parallelParts: 1 });
    const put = store.put('long', pattern(2500));
    if (code === null) t.same(await put, { bytes: 2500 }, what);
    else await rejectsWith(t, put, code, what);
  }
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

t.test('parts of an upload have one size and a limited number', async (t) => {
  const limits = { partBytes: 10, parallelParts: 2 };
  for (const bytes of [95, 90_000, 90_001, 1_000_000]) {
    const { partBytes } = limitsFor(new Uint8Array(bytes), undefined, limits);
    t.ok(partBytes >= limits.partBytes && Math.ceil(bytes / partBytes) <= 9000, `${bytes} bytes`);
  }
  const stream = (async function* () {})();
  t.same(limitsFor(stream, undefined, limits), limits);
  t.same(limitsFor(stream, 270_000_000, limits), { ...limits, partBytes: 30_000 });
});

t.test('found uploads are aborted only if the confirmation succeeds', async (t) => {
  const found: Answer = (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/xml' });
    response.end(
      '<?xml version="1.0"?><ListMultipartUploadsResult><IsTruncated>false</IsTruncated>' +
        '<Upload><Key>jobs/1/a</Key><UploadId>u1</UploadId></Upload></ListMultipartUploadsResult>',
    );
  };
  const { store, seen } = await startFake(t, [found, found, succeeds]);
  const confirm = async () => {
    throw new Error('another worker has the job');
  };
  await t.rejects(store.abandonUploads('jobs/1/', { confirm }));
  t.match(seen, [/^GET/]);
  t.equal(await store.abandonUploads('jobs/1/', { confirm: async () => undefined }), 1);
  t.match(seen, [/^GET/, /^GET/, /^DELETE/]);
});
