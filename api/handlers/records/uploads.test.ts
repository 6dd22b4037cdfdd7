import { EventEmitter, once } from 'node:events';
import t from 'tap';
import { type Dataset, datasetKey, type Problem, type Upload } from '../../../contracts/index.js';
import { digest, PART, startUploads, TEXT } from '../../testing/part-uploads.js';
import { startTestStack, withMethod } from '../../testing/stack.js';

t.test(
  'parts arrive in any order, the upload resumes after an interruption, and becomes one dataset',
  async (t) => {
    const { stack, begin, put, partOf, get, complete, keys } = await startUploads(t);
    const { id, num_parts } = await begin({ digest: digest(TEXT) });
    t.equal(num_parts, Math.ceil(TEXT.length / PART));
    t.ok(num_parts > 4);
    for (const part of [3, 1, num_parts]) t.equal((await put(id, part, partOf(TEXT, part))).statusCode, 204);
    t.same((await get(id)).received_parts, [1, 3, num_parts]);
    t.match((await complete(id)).json<Problem>(), {
      status: 409,
      code: 'upload_incomplete',
      detail: /part 2 of/,
    });
    const { received_parts } = await get(id);
    for (let part = 1; part <= num_parts; part += 1)
      if (!received_parts.includes(part)) await put(id, part, partOf(TEXT, part));
    const [first, second] = await Promise.all([complete(id), complete(id)]);
    t.equal(first.statusCode, 201, first.body);
    const dataset = first.json<Dataset>();
    t.match(dataset, { name: 'parts', bytes: TEXT.length, digest: digest(TEXT), source: null });
    t.equal(second.json<Dataset>().id, dataset.id, 'concurrent completions create one dataset');
    t.equal((await complete(id)).json<Dataset>().id, dataset.id, 'and again');
    t.ok((await stack.objects.get(datasetKey(dataset.id))).equals(TEXT));
    t.match(await get(id), { received_parts: [], dataset_id: dataset.id });
    t.equal((await keys('uploads/')).length, 2, 'no part is left');
    t.equal((await keys('datasets/')).length, 2, 'nor the content stored by the other completion');
    t.equal((await stack.request({ method: 'DELETE', url: `/v1/uploads/${id}` })).statusCode, 204);
    t.same(await keys('uploads/'), []);
    t.equal(
      (await stack.request({ url: `/v1/datasets/${dataset.id}` })).statusCode,
      200,
      'the dataset stays',
    );
    t.match((await complete(id)).json<Problem>(), { status: 404, code: 'upload_not_found' });
  },
);

t.test('parts and content that differ from the announcement', async (t) => {
  const { begin, put, partOf, get, complete, keys } = await startUploads(t);
  const { id, num_parts } = await begin({ digest: digest(Buffer.from('other')) });
  const bad: [number, Buffer][] = [
    [1, TEXT.subarray(0, PART - 1)],
    [1, TEXT.subarray(0, PART + 1)],
    [num_parts, TEXT.subarray(0, PART)],
    [num_parts + 1, TEXT.subarray(0, PART)],
    [1, Buffer.alloc(0)],
  ];
  for (const [part, payload] of bad) {
    const { code } = (await put(id, part, payload)).json<Problem>();
    t.ok(['upload_part_invalid', 'body_required'].includes(code), `${part}: ${payload.length}: ${code}`);
  }
  t.same((await get(id)).received_parts, []);
  for (let part = 1; part <= num_parts; part += 1) await put(id, part, partOf(TEXT, part));
  t.match((await complete(id)).json<Problem>(), { status: 422, code: 'upload_digest_mismatch' });
  t.equal((await get(id)).received_parts.length, num_parts, 'the parts are still there');
  t.same(await keys('datasets/'), []);

  const latin = Buffer.from([0x61, 0xff]);
  const other = await begin({}, latin);
  await put(other.id, 1, latin);
  t.match((await complete(other.id)).json<Problem>(), { status: 422, code: 'dataset_not_utf8' });
});

t.test('a too large upload is refused before it is sent', async (t) => {
  const { stack } = await startUploads(t);
  const post = async (bytes: number) =>
    (
      await stack.request({ method: 'POST', url: '/v1/uploads', payload: { name: 'x', bytes } })
    ).json<Problem>();
  t.match(await post(10_001), { status: 413, code: 'dataset_too_large' });
  await stack.store.putQuota('default', { max_jobs: null, max_ranks: null, max_storage_bytes: 1000 });
  t.match(await post(1001), { status: 403, code: 'storage_quota_exceeded' });
});

t.test('names and ids cannot traverse the file system', async (t) => {
  const { stack, begin, put, complete, keys } = await startUploads(t);
  const text = Buffer.from('text');
  for (const name of [
    '../../etc/passwd',
    '/etc/passwd',
    'a/../../b',
    '..',
    '%2e%2e%2f',
    'C:\\x',
    './upload.json',
  ]) {
    const { id } = await begin({ name }, text);
    await put(id, 1, text);
    const reply = await complete(id);
    t.equal(reply.statusCode, 201, reply.body);
    t.equal(reply.json<Dataset>().name, name, 'it is stored verbatim');
  }
  const direct = await stack.request({
    method: 'POST',
    url: `/v1/datasets?name=${encodeURIComponent('../../x')}`,
    headers: { 'content-type': 'text/plain' },
    payload: 'text',
  });
  t.equal(direct.statusCode, 201);
  for (const key of await keys(''))
    t.match(
      key,
      /^(uploads\/default\/upl_\w{26}\/(upload|dataset)\.json|datasets\/ds_\w{26}\/(text|dataset\.json))$/,
    );
  for (const id of ['..', '%2e%2e%2fdatasets', 'upl_..%2f..', `upl_${'0'.repeat(25)}%2f`]) {
    const reply = await stack.request({ url: `/v1/uploads/${id}` });
    t.ok([400, 404].includes(reply.statusCode), `${id}: ${reply.statusCode}`);
  }
});

// With a second part, later completions find that the first removed it meanwhile.
for (const [first, rest] of [
  ['old', ''],
  ['new', ''],
  ['old', 'z'],
  ['new', 'z'],
] as const) {
  t.test(
    `concurrent completions with parts replaced in between: ${first} ends first, ${1 + rest.length} parts`,
    async (t) => {
      const events = new EventEmitter();
      events.setMaxListeners(0);
      let reading = 0;
      const stack = await startTestStack({
        limits: { part_bytes: PART },
        wrap: ({ objects }) => ({
          objects: withMethod(objects, 'stream', async (key, range) => {
            if (!key.endsWith('/parts/000001')) return objects.stream(key, range);
            // The current content; the test decides when its completion continues.
            const bytes = await objects.get(key);
            reading += 1;
            const [mine, goOn] = [reading, once(events, `go on ${reading}`)];
            events.emit(`reading ${mine}`);
            return (async function* () {
              await goOn;
              yield bytes;
            })();
          }),
        }),
      });
      t.teardown(() => stack.close());
      const [old, replaced] = ['a', 'b'].map((letter) => Buffer.alloc(PART, letter));
      const payload = { name: 'x', bytes: PART + rest.length };
      const { id } = (await stack.request({ method: 'POST', url: '/v1/uploads', payload })).json<Upload>();
      const put = (part: number, content = Buffer.from(rest)) =>
        stack.request({
          method: 'PUT',
          url: `/v1/uploads/${id}/parts/${part}`,
          headers: { 'content-type': 'application/octet-stream' },
          payload: content,
        });
      const begin = async () => {
        const began = once(events, `reading ${reading + 1}`);
        const reply = stack.request({ method: 'POST', url: `/v1/uploads/${id}/complete` });
        await began;
        return { reply };
      };
      await put(1, old);
      if (rest) await put(2);
      const one = await begin();
      await put(1, replaced);
      const other = await begin();
      const order = first === 'old' ? [1, 2] : [2, 1];
      const answers: Dataset[] = [];
      for (const n of order) {
        events.emit(`go on ${n}`);
        const reply = await (n === 1 ? one : other).reply;
        t.equal(reply.statusCode, 201, reply.body);
        answers.push(reply.json<Dataset>());
      }
      const wanted = Buffer.concat([(first === 'old' ? old : replaced) as Buffer, Buffer.from(rest)]);
      t.same(answers[0], answers[1], 'both answer with one dataset');
      t.equal(answers[0]?.digest, digest(wanted));
      t.ok((await stack.objects.get(datasetKey(`${answers[0]?.id}`))).equals(wanted));
      t.same((await stack.request({ url: `/v1/datasets/${answers[0]?.id}` })).json(), answers[0]);
      const left: string[] = [];
      for await (const { key } of stack.objects.list('datasets/')) left.push(key);
      t.equal(left.length, 2, 'no trace of the other is left');
    },
  );
}

t.test(
  'an interrupted completion is finished by the next one, and a deleted dataset is not created again',
  async (t) => {
    let fail = true;
    const stack = await startTestStack({
      wrap: ({ store }) => ({
        store: {
          ...store,
          async putDataset(dataset, options) {
            if (fail) throw new Error('the server dies');
            return store.putDataset(dataset, options);
          },
        },
      }),
    });
    t.teardown(() => stack.close());
    const payload = { name: 'x', bytes: TEXT.length };
    const { id } = (await stack.request({ method: 'POST', url: '/v1/uploads', payload })).json<Upload>();
    const put = (content: Buffer) =>
      stack.request({
        method: 'PUT',
        url: `/v1/uploads/${id}/parts/1`,
        headers: { 'content-type': 'application/octet-stream' },
        payload: content,
      });
    const complete = () => stack.request({ method: 'POST', url: `/v1/uploads/${id}/complete` });
    await put(TEXT);
    t.equal((await complete()).statusCode, 500);
    t.equal((await stack.request({ url: `/v1/uploads/${id}` })).json<Upload>().dataset_id, null);
    fail = false;
    await put(Buffer.alloc(TEXT.length, 'x'));
    const dataset = (await complete()).json<Dataset>();
    t.equal(dataset.digest, digest(TEXT), 'the decided outcome stays');
    t.equal((await stack.request({ method: 'DELETE', url: `/v1/datasets/${dataset.id}` })).statusCode, 204);
    t.match((await complete()).json<Problem>(), { status: 404, code: 'dataset_not_found' });
    for await (const { key } of stack.objects.list('datasets/')) t.fail(`${key} is left`);
  },
);

t.test('an upload deleted during its completion is reported as unknown', async (t) => {
  /** A hook that runs once, before the next read of an object whose key ends with `end`. */
  let before: { end: string; happens(): Promise<unknown> } | null = null;
  const happen = async (key: string) => {
    if (!before || !key.endsWith(before.end)) return;
    const { happens } = before;
    before = null;
    await happens();
  };
  const stack = await startTestStack({
    wrap: ({ objects }) => ({
      objects: withMethod(
        withMethod(objects, 'get', async (key, range) => happen(key).then(() => objects.get(key, range))),
        'stream',
        async (key, range) => happen(key).then(() => objects.stream(key, range)),
      ),
    }),
  });
  t.teardown(() => stack.close());
  for (const [method, path, end] of [
    ['GET', '', '/upload.json'],
    ['POST', '/part-urls', '/upload.json'],
    ['DELETE', '', '/upload.json'],
    ['POST', '/complete', '/upload.json'],
    ['POST', '/complete', '/parts/000001'],
  ] as const) {
    const payload = { name: 'x', bytes: TEXT.length };
    const { id } = (await stack.request({ method: 'POST', url: '/v1/uploads', payload })).json<Upload>();
    const url = `/v1/uploads/${id}`;
    const headers = { 'content-type': 'application/octet-stream' };
    await stack.request({ method: 'PUT', url: `${url}/parts/1`, headers, payload: TEXT });
    const keys: string[] = [];
    for await (const { key } of stack.objects.list('uploads/')) if (key.includes(id)) keys.push(key);
    before = { end, happens: () => stack.objects.delete(keys) };
    const reply = await stack.request({ method, url: url + path });
    t.match(reply.json<Problem>(), { status: 404, code: 'upload_not_found' }, `${method} ${path}, at ${end}`);
    t.equal(before, null);
  }
  for await (const { key } of stack.objects.list('datasets/')) t.fail(`${key} is left`);
});
