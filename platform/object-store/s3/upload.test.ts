/** Uploads in parts to a misbehaving server. */
import { createHash } from 'node:crypto';
import t from 'tap';
import {
  type Answer,
  fails,
  hangsUp,
  refusesParts,
  standInStore,
  startFake,
  startsUpload,
  succeeds,
} from '../../testing/fake-s3.js';
import { pattern, rejectsWith } from '../../testing/object-store-checks.js';
import { S3StandIn } from '../../testing/s3-stand-in.js';
import { limitsFor } from './upload.js';

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
  const theseParts = stored(2500, `"${whole}-3"`);
  const otherEtag = stored(2500, '"x"');
  const cases: [string, Answer, Answer, string | null][] = [
    ['gone: no object', gone, none, 'object_not_found'],
    ['gone: another size', gone, stored(7, `"${whole}-3"`), 'object_not_found'],
    ['gone: other parts', gone, stored(2500, `"${'0'.repeat(32)}-3"`), 'object_not_found'],
    ['gone: more parts', gone, stored(2500, `"${whole}-4"`), 'object_not_found'],
    ['gone: these parts', gone, theseParts, null],
    ['gone: an ETag of another kind', gone, otherEtag, null],
    ['500: no object', fails(500, 'InternalError'), none, 'object_store_unavailable'],
    ['500: these parts', fails(500, 'InternalError'), theseParts, null],
    ['500: perhaps an older object', fails(500, 'InternalError'), otherEtag, 'object_store_unavailable'],
    ['no answer: these parts', hangsUp, theseParts, null],
    ['refused', fails(403, 'AccessDenied'), theseParts, 'access_denied'],
  ];
  for (const [title, end, head, code] of cases) {
    const answers: Answer = (request, response) => {
      if (request.method === 'HEAD') return head(request, response);
      if (request.method === 'PUT') return stored(0, part)(request, response);
      const ends = request.method === 'POST' && request.url?.includes('uploadId');
      return (ends ? end : startsUpload)(request, response);
    };
    const { store } = await startFake(t, [answers], { partBytes: 1000, parallelParts: 1 });
    const put = store.put('long', pattern(2500));
    if (code === null) t.same(await put, { bytes: 2500 }, title);
    else await rejectsWith(t, put, code, title);
  }
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
