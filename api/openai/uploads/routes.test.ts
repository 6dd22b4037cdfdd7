import { Readable } from 'node:stream';
import { type APIError, toFile } from 'openai';
import t from 'tap';
import { collectGarbage } from '../../../control/garbage/collect.js';
import { uploadDocumentKey } from '../../../control/recovery/uploads.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { putDocument } from '../../../state/index.js';
import { storedKeys } from '../../testing/model-uploads.js';
import { CONTENT, MD5, PARTS, partId, refused, setup } from '../../testing/openai-uploads.js';
import { CHATS, withMethod } from '../../testing/stack.js';
import { MAX_PARTS } from './parts.js';

/** An object store in which each upload has this many parts of one byte. */
function withManyParts(objects: ObjectStore, count: number): ObjectStore {
  const list = withMethod(objects, 'list', async function* (prefix) {
    yield* objects.list(prefix);
    if (!prefix.endsWith('/parts/')) return;
    for (let part = 0; part < count; part++)
      yield { key: prefix + partId(part), bytes: 1, last_modified: new Date().toISOString(), etag: '' };
  });
  return withMethod(list, 'stream', async (...args) =>
    args[0].includes('/parts/') ? Readable.from([Buffer.from('x')]) : objects.stream(...args),
  );
}

t.test('parts of any sizes become the file that files.create makes', async (t) => {
  const { stack, uploads, begin, send, stored } = await setup(t);
  const upload = await begin();
  t.match(upload, {
    id: /^upl_\w{26}$/,
    object: 'upload',
    status: 'pending',
    filename: 'chats.jsonl',
    purpose: 'fine-tune',
    bytes: CONTENT.length,
    expires_at: upload.created_at + 3600,
    file: null,
  });
  t.equal(await stored(), CONTENT.length, 'its storage counts from the beginning');
  const sent = new Map<number, string>();
  const inReverse = [...PARTS.entries()].reverse();
  await Promise.all(inReverse.map(async ([index, part]) => sent.set(index, await send(upload.id, part))));
  const part = await uploads.parts.create(upload.id, { data: await toFile(Buffer.from('again'), 'part') });
  t.match(part, { id: /^part_\w{26}$/, object: 'upload.part', created_at: Number, upload_id: upload.id });
  const partIds = PARTS.map((_, index) => sent.get(index) ?? '');

  const completion = { part_ids: partIds, md5: MD5.toUpperCase() };
  const [done, same] = await Promise.all([1, 2].map(() => uploads.complete(upload.id, completion)));
  t.match(done, { ...upload, status: 'completed', file: { object: 'file', filename: 'chats.jsonl' } });
  t.same(same, done, 'concurrent completions make one file');
  t.same(await uploads.complete(upload.id, completion), done, 'and so does a repeated one');

  const dataset = await stack.store.getDataset(done?.file?.id ?? '');
  const { id, name, created_at, ...made } = await stack.upload(CHATS, 'jsonl');
  t.match(dataset, made, 'with digest, counts and format');
  t.equal(await stored(), 2 * CONTENT.length);
  t.equal((await storedKeys(stack, 'uploads/')).filter((key) => key.includes('/parts/')).length, 0);
  const { data: audited } = await stack.store.listAudit('default');
  const [last, , , first] = audited.filter(({ operation }) => operation.endsWith('Upload'));
  t.match(last, { operation: 'completeUpload', resource: done?.file?.id, outcome: 'succeeded' });
  t.match(first, { operation: 'createUpload', resource: upload.id, outcome: 'succeeded' });
});

t.test('wrong parts, orders and contents', async (t) => {
  const { stack, uploads, begin, send, sendAll } = await setup(t);
  const { id } = await begin();
  const partIds = await sendAll(id);
  const before = await storedKeys(stack);
  const complete = (more: object) => uploads.complete(id, { part_ids: partIds, ...more });
  const [first = '', ...rest] = partIds;
  const unknown = `part_${'0'.repeat(26)}`;
  const wrong: [more: object, error: object][] = [
    [{ part_ids: [unknown, ...rest] }, { code: 'upload_part_not_found', param: 'part_ids' }],
    [{ part_ids: ['../upload.json', ...rest] }, { code: 'upload_part_not_found', param: 'part_ids' }],
    [{ part_ids: rest }, { code: 'upload_bytes_mismatch', param: 'part_ids' }],
    [{ part_ids: [first, first, ...rest] }, { code: 'invalid_parameter', param: 'part_ids' }],
    [{ part_ids: [] }, { code: 'invalid_parameter', param: 'part_ids' }],
    [{ md5: MD5.slice(1) }, { code: 'invalid_parameter', param: 'md5' }],
    [{ md5: MD5.replace(/./, (digit) => (digit === '0' ? '1' : '0')) }, { code: 'upload_md5_mismatch' }],
    [{ more: 1 }, { code: 'invalid_parameter' }],
  ];
  for (const [more, error] of wrong) await refused(t, complete(more), { status: 400, ...error });
  const backwards = { part_ids: [...partIds].reverse() };
  await refused(t, complete(backwards), { status: 400, code: 'dataset_line_invalid', param: 'file' });
  t.same(await storedKeys(stack), before, 'a refused completion changes nothing');
  t.equal((await complete({ md5: MD5 })).status, 'completed');
  await refused(t, send(id, Buffer.from('more')), { status: 400, code: 'upload_not_pending' });
  await refused(t, uploads.cancel(id), { status: 400, code: 'upload_not_pending' });
  const [entry] = (await stack.store.listAudit('default')).data;
  t.match(entry, { operation: 'deleteUpload', outcome: 'refused', code: 'upload_not_pending', resource: id });
});

t.test('as many parts as an upload may have can be completed', async (t) => {
  const { begin, uploads, send } = await setup(t, {
    wrap: ({ objects }) => ({ objects: withManyParts(objects, MAX_PARTS) }),
  });
  const { id } = await begin(MAX_PARTS);
  const partIds = Array.from({ length: MAX_PARTS }, (_, part) => partId(part));
  // All were found: together they have the announced bytes, which are no file.
  await refused(t, uploads.complete(id, { part_ids: partIds, md5: MD5 }), {
    status: 400,
    code: /line_invalid|md5/,
  });
  await refused(t, uploads.complete(id, { part_ids: [...partIds, partId(MAX_PARTS)] }), {
    status: 400,
    param: 'part_ids',
  });
  await send(id, Buffer.from('x')).then(
    () => t.fail('one more was taken'),
    (error: APIError) => t.match(error, { status: 400, code: 'upload_too_many_parts' }),
  );
});

t.test('cancelled and expired uploads', async (t) => {
  const { stack, uploads, begin, send, sendAll, stored } = await setup(t);
  const upload = await begin();
  const partIds = await sendAll(upload.id);
  t.same(await uploads.cancel(upload.id), { ...upload, status: 'cancelled' });
  t.same(await uploads.cancel(upload.id), { ...upload, status: 'cancelled' }, 'and again');
  t.equal(await stored(), 0);
  t.equal((await storedKeys(stack)).filter((key) => key.includes('/parts/')).length, 0);
  const cancelled = { status: 400, code: 'upload_not_pending', message: /is cancelled/ };
  await refused(t, send(upload.id, CONTENT), cancelled);
  await refused(t, uploads.complete(upload.id, { part_ids: partIds }), cancelled);
  const own = await stack.request({ url: `/v1/uploads/${upload.id}` });
  t.equal(own.statusCode, 404, 'the own API does not know it any more');

  const old = await begin();
  const parts = await sendAll(old.id);
  const document = uploadDocumentKey('default', old.id);
  const announced = JSON.parse(String(await stack.objects.get(document)));
  const createdAt = new Date(Date.now() - 3_600_000).toISOString();
  await putDocument(stack.objects, document, { ...announced, created_at: createdAt });
  const expired = { status: 400, code: 'upload_not_pending', message: /is expired/ };
  await refused(t, send(old.id, CONTENT), expired);
  await refused(t, uploads.complete(old.id, { part_ids: parts }), expired);

  const kept = await stack.upload(CHATS, 'jsonl');
  t.equal(await stored(), 2 * CONTENT.length);
  await stack.loseRedis();
  t.equal(await stored(), 2 * CONTENT.length, 'what is pending is reserved again, what was cancelled is not');
  await collectGarbage({ store: stack.store, objects: stack.objects, grace_ms: 0 });
  t.same(await storedKeys(stack, 'uploads/'), [], 'garbage collection removes both');
  t.equal(await stored(), kept.bytes);
});

t.test('an upload that is cancelled while a part or its completion is on the way', async (t) => {
  const cancel: { now: (() => Promise<unknown>) | null; at: RegExp } = { now: null, at: /./ };
  const { stack, uploads, begin, send, stored } = await setup(t, {
    wrap: ({ objects }) => ({
      objects: withMethod(objects, 'put', async (key, body, options) => {
        const put = await objects.put(key, body, options);
        const { now, at } = cancel;
        if (now === null || !at.test(key)) return put;
        cancel.now = null;
        await now();
        return put;
      }),
    }),
  });
  const left = async () => (await storedKeys(stack)).filter((key) => /\/parts\/|^datasets/.test(key));
  const inPart = await begin();
  Object.assign(cancel, { now: () => uploads.cancel(inPart.id), at: /\/parts\// });
  await refused(t, send(inPart.id, CONTENT), { code: 'upload_not_pending' });
  t.same(await left(), []);
  const inCompletion = await begin();
  const partIds = [await send(inCompletion.id, CONTENT)];
  Object.assign(cancel, { now: () => uploads.cancel(inCompletion.id), at: /^datasets\// });
  await refused(t, uploads.complete(inCompletion.id, { part_ids: partIds }), { code: 'upload_not_found' });
  t.same(await left(), []);
  t.equal(await stored(), 0);
});

t.test('keys of other projects and without the scope', async (t) => {
  const { stack, clientOf, uploads, begin, send } = await setup(t);
  const { id } = await begin();
  const part = await send(id, CONTENT);
  const keyOf = ({ authorization }: { authorization: string }) => authorization.slice('Bearer '.length);
  const other = clientOf(keyOf(await stack.headersIn('elsewhere')));
  const unknown = { status: 404, code: 'upload_not_found' };
  await refused(t, send(id, CONTENT, other), unknown);
  await refused(t, other.complete(id, { part_ids: [part] }), unknown);
  await refused(t, other.cancel(id), unknown);
  const reader = clientOf(keyOf(await stack.headersOf('jobs:read')));
  const lacking = { status: 403, type: 'permission_error' };
  await refused(t, begin(1, reader), lacking);
  await refused(t, send(id, CONTENT, reader), lacking);
  await refused(t, reader.cancel(id), lacking);
  const nobody = { status: 401, type: 'authentication_error' };
  await refused(t, clientOf('zf_unknown').cancel(id), nobody);
  await refused(t, uploads.cancel('upl_1'), { status: 404, code: 'upload_not_found', param: 'upload_id' });
  t.equal((await uploads.complete(id, { part_ids: [part] })).status, 'completed');
});
