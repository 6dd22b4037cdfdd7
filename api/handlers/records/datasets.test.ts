import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import {
  type Dataset,
  datasetKey,
  type Job,
  type Page,
  type Problem,
  ZerofleetError,
} from '../../../contracts/index.js';
import { ObjectStoreError } from '../../../platform/object-store/index.js';
import { ADMIN_KEY, smallSpec, startTestStack, withMethod } from '../../testing/stack.js';

const TEXT = { 'content-type': 'text/plain; charset=utf-8' };

t.test('datasets', async (t) => {
  const stack = await startTestStack({ limits: { dataset_bytes: 100_000 } });
  t.teardown(() => stack.close());
  const upload = (
    payload: string | Buffer | Readable,
    headers: Record<string, string> = TEXT,
    query = 'name=a%20text',
  ) => stack.request({ method: 'POST', url: `/v1/datasets?${query}`, headers, payload });
  const storedKeys = async () => {
    const keys: string[] = [];
    for await (const object of stack.objects.list('')) keys.push(object.key);
    return keys;
  };

  t.test('the content comes back byte for byte, whole or in ranges', async (t) => {
    const bytes = Buffer.from('Grüße, 世界 🌍\n'.repeat(500));
    const { id, digest } = (await upload(bytes)).json<Dataset>();
    const url = `/v1/datasets/${id}/content`;
    const get = (range?: string, more = {}) =>
      stack.request({ url, headers: range === undefined ? {} : { range }, ...more });
    const whole = await get();
    t.ok(whole.rawPayload.equals(bytes));
    t.match(whole.headers, { etag: `"${digest.slice(7)}"`, 'content-length': String(bytes.length) });
    const last = bytes.length - 1;
    for (const [range, begin, end] of [
      ['bytes=0-0', 0, 1],
      ['bytes=5-', 5, bytes.length],
      [`bytes=${last}-`, last, bytes.length],
      ['bytes=7-9999999', 7, bytes.length],
    ] as const) {
      const part = await get(range);
      t.equal(part.statusCode, 206, range);
      t.equal(part.headers['content-range'], `bytes ${begin}-${end - 1}/${bytes.length}`);
      t.ok(part.rawPayload.equals(bytes.subarray(begin, end)), range);
    }
    t.match((await get(`bytes=${bytes.length}-`)).json<Problem>(), {
      code: 'range_not_satisfiable',
      status: 416,
    });
    const head = await get(undefined, { method: 'HEAD' });
    t.match(head, { statusCode: 200, body: '', headers: { 'content-length': String(bytes.length) } });
    const unknown = await stack.request({ url: `/v1/datasets/ds_${'0'.repeat(26)}/content` });
    t.match(unknown.json<Problem>(), { code: 'dataset_not_found', status: 404 });
    const { stream } = stack.objects;
    t.teardown(() => Object.assign(stack.objects, { stream }));
    stack.objects.stream = async (key, part) => {
      await stack.request({ method: 'DELETE', url: `/v1/datasets/${id}` });
      return stream.call(stack.objects, key, part);
    };
    const late = await get();
    t.match(late.json<Problem>(), { code: 'dataset_not_found', status: 404 }, 'deleted in between');
  });

  t.test('an upload is stored byte for byte', async (t) => {
    const text = 'Grüße, 世界 🌍\n'.repeat(500);
    const reply = await upload(text);
    t.equal(reply.statusCode, 201);
    const dataset = reply.json<Dataset>();
    const bytes = Buffer.from(text);
    t.equal(reply.headers.location, `/v1/datasets/${dataset.id}`);
    t.match(dataset, { name: 'a text', format: 'text', bytes: bytes.length, num_tokens: bytes.length });
    t.equal(dataset.digest, `sha256:${createHash('sha256').update(bytes).digest('hex')}`);
    t.ok((await stack.objects.get(datasetKey(dataset.id))).equals(bytes));
    t.same((await stack.request({ url: `/v1/datasets/${dataset.id}` })).json(), dataset);
  });

  t.test('characters may be split anywhere', async (t) => {
    const bytes = Buffer.from('aé世🌍z');
    const pieces = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1));
    const reply = await upload(Readable.from(pieces), { 'content-type': 'application/octet-stream' });
    t.equal(reply.statusCode, 201);
    t.equal(reply.json<Dataset>().bytes, bytes.length);
  });

  const refused: [string, string | Buffer | Readable, number, string][] = [
    ['an empty text', '', 422, 'dataset_empty'],
    ['an empty stream', Readable.from([]), 422, 'dataset_empty'],
    ['bytes that are not UTF-8', Buffer.from([0x61, 0xff, 0x62]), 422, 'dataset_not_utf8'],
    ['a truncated character at the end', Buffer.from('世').subarray(0, 2), 422, 'dataset_not_utf8'],
    ['more than the limit, announced', Buffer.alloc(100_001, 'a'), 413, 'dataset_too_large'],
    [
      'more than the limit, in pieces',
      Readable.from([Buffer.alloc(60_000, 'a'), Buffer.alloc(60_000, 'a')]),
      413,
      'dataset_too_large',
    ],
  ];
  for (const [name, payload, status, code] of refused) {
    t.test(`refused without leftovers: ${name}`, async (t) => {
      const before = await storedKeys();
      const reply = await upload(payload);
      t.equal(reply.statusCode, status);
      t.equal(reply.json<Problem>().code, code);
      t.same(await storedKeys(), before);
    });
  }

  t.test('the position of invalid UTF-8 is reported', async (t) => {
    const reply = await upload(Readable.from([Buffer.from('世界'), Buffer.from([0x61, 0xc3, 0x28])]));
    t.match(reply.json<Problem>().detail, /at byte 7$/);
  });

  t.test('bad parameters and media types', async (t) => {
    t.equal((await upload('x', TEXT, '')).json<Problem>().code, 'invalid_parameter');
    t.equal((await upload('x', TEXT, 'name=x&format=csv')).json<Problem>().code, 'invalid_parameter');
    t.equal(
      (await upload('{}', { 'content-type': 'application/json' })).json<Problem>().code,
      'unsupported_media_type',
    );
  });

  t.test('lists, newest first', async (t) => {
    const page: Page<Dataset> = (await stack.request({ url: '/v1/datasets?limit=1' })).json();
    t.equal(page.data.length, 1);
    const next: Page<Dataset> = (
      await stack.request({ url: `/v1/datasets?after=${page.next_cursor}` })
    ).json();
    t.ok(next.data.every((dataset) => dataset.id < (page.data[0]?.id ?? '')));
  });

  t.test('a dataset that a job needs cannot be deleted', async (t) => {
    const dataset = await stack.upload('text '.repeat(100));
    const url = `/v1/datasets/${dataset.id}`;
    const job = (
      await stack.request({ method: 'POST', url: '/v1/jobs', payload: smallSpec(dataset.id) })
    ).json<Job>();
    const inUse = await stack.request({ method: 'DELETE', url });
    t.equal(inUse.statusCode, 409);
    t.equal(inUse.json<Problem>().code, 'dataset_in_use');
    await stack.request({ method: 'POST', url: `/v1/jobs/${job.id}/cancel` });
    const deleted = await stack.request({ method: 'DELETE', url });
    t.equal(deleted.statusCode, 204);
    t.equal(await stack.objects.head(datasetKey(dataset.id)), null);
    for (const method of ['GET', 'DELETE'] as const) {
      t.equal((await stack.request({ method, url })).json<Problem>().code, 'dataset_not_found');
    }
  });
});

t.test('a store that fails while an upload arrives', async (t) => {
  const failures: [string, number][] = [
    ['disk_full', 507],
    ['bucket_not_found', 503],
    ['object_store_unavailable', 503],
  ];
  for (const [code, status] of failures) {
    t.test(code, async (t) => {
      const fail = async () => {
        throw new ObjectStoreError(code as 'disk_full', 'secret detail');
      };
      const stack = await startTestStack({
        wrap: ({ objects }) => ({ objects: withMethod(objects, 'put', fail) }),
      });
      t.teardown(() => stack.close());
      const reply = await stack.request({
        method: 'POST',
        url: '/v1/datasets?name=x',
        headers: TEXT,
        payload: 'some text',
      });
      t.equal(reply.statusCode, status);
      t.equal(reply.json<Problem>().code, code);
      t.notMatch(reply.body, /secret detail/);
      t.same((await stack.store.listDatasets()).data, []);
    });
  }
});

t.test('if the record cannot be written, its text is removed', async (t) => {
  const stack = await startTestStack({
    wrap: ({ store }) => ({ store: { ...store, putDataset: () => Promise.reject(new Error('gone')) } }),
  });
  t.teardown(() => stack.close());
  const reply = await stack.request({
    method: 'POST',
    url: '/v1/datasets?name=x',
    headers: TEXT,
    payload: 'text',
  });
  t.equal(reply.json<Problem>().code, 'internal_error');
  for await (const object of stack.objects.list('')) t.fail(`${object.key} was left behind`);
});

t.test("if the record's confirmation was lost, its text is kept", async (t) => {
  const stack = await startTestStack({
    wrap: ({ store }) => ({
      store: {
        ...store,
        putDataset: async (dataset) => {
          await store.putDataset(dataset);
          throw new ZerofleetError('job_store_unavailable', 'the connection was lost');
        },
      },
    }),
  });
  t.teardown(() => stack.close());
  const url = '/v1/datasets?name=x';
  const reply = await stack.request({ method: 'POST', url, headers: TEXT, payload: 'text' });
  t.equal(reply.json<Problem>().code, 'job_store_unavailable');
  const [dataset] = (await stack.store.listDatasets()).data;
  t.equal(String(await stack.objects.get(datasetKey(dataset?.id ?? ''))), 'text');
});

t.test('over a connection', async (t) => {
  let putsDone = 0;
  const stack = await startTestStack({
    // Long enough for an answer of a busy machine.
    limits: { dataset_bytes: 1_000_000, idle_connection_ms: 1_500 },
    wrap: ({ objects }) => ({
      objects: withMethod(objects, 'put', (...args) => objects.put(...args).finally(() => (putsDone += 1))),
    }),
  });
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const send = (length: Record<string, string>) => {
    const headers = { ...TEXT, ...length, authorization: `Bearer ${ADMIN_KEY}` };
    const client = httpRequest(`${base}/v1/datasets?name=x`, { method: 'POST', headers, agent: false });
    client.on('error', () => undefined);
    return client;
  };

  t.test('an upload whose connection breaks leaves nothing', async (t) => {
    const client = send({ 'content-length': '50000' });
    client.write('a'.repeat(20_000));
    await once(stack.app.server, 'request');
    client.destroy();
    while (putsDone < 1) await sleep(10);
    for await (const object of stack.objects.list('')) t.fail(`${object.key} was left behind`);
    t.same((await stack.store.listDatasets()).data, []);
  });

  t.test('an upload that stops in the middle leaves nothing', async (t) => {
    const before = putsDone;
    const client = send({ 'content-length': '50000' });
    client.write('a'.repeat(20_000));
    await new Promise((resolve) => client.on('close', resolve));
    while (putsDone === before) await sleep(10);
    for await (const object of stack.objects.list('')) t.fail(`${object.key} was left behind`);
  });

  t.test('an upload with a too large content-length is refused before it is sent', async (t) => {
    const client = send({ 'content-length': String(2 ** 40) });
    client.write('a'.repeat(100));
    const [reply] = (await once(client, 'response')) as [IncomingMessage];
    t.equal(reply.statusCode, 413);
    t.equal(reply.headers.connection, 'close');
    client.destroy();
  });

  t.test('an invalid upload is answered while the client is still sending', async (t) => {
    const client = send({ 'transfer-encoding': 'chunked' });
    client.write(Buffer.from([0x61, 0xff, 0x61]));
    const [reply] = (await once(client, 'response')) as [IncomingMessage];
    t.equal(reply.statusCode, 422);
    client.destroy();
  });
});
