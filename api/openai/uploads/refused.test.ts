import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import t from 'tap';
import { storedKeys } from '../../testing/model-uploads.js';
import { refused, setup } from '../../testing/openai-uploads.js';
import { ADMIN_KEY, withMethod } from '../../testing/stack.js';
import { MAX_PART_BYTES } from './parts.js';

t.test('what is no file for training is refused', async (t) => {
  const { stack, uploads } = await setup(t, { limits: { dataset_bytes: 10_000 } });
  const wanted = { bytes: 10, filename: 'a', mime_type: 'text/jsonl', purpose: 'fine-tune' as const };
  const expiresAfter = { anchor: 'created_at' as const, seconds: 3600 };
  const create = (more: object) => uploads.create({ ...wanted, ...more });
  await refused(t, create({ purpose: 'batch' }), { status: 400, param: 'purpose' });
  await refused(t, create({ expires_after: expiresAfter }), { status: 400, param: 'expires_after' });
  await refused(t, create({ bytes: 0 }), { status: 400, param: 'bytes' });
  await refused(t, create({ filename: undefined }), { status: 400, param: 'filename' });
  await refused(t, create({ bytes: 10_001 }), { status: 413, code: 'dataset_too_large' });
  await stack.store.putQuota('default', { max_jobs: null, max_ranks: null, max_storage_bytes: 1000 });
  await refused(t, create({ bytes: 1001 }), { status: 403, code: 'storage_quota_exceeded', type: /./ });
  const { filename } = await create({ filename: `${'é😀'.repeat(60)}.jsonl` });
  t.equal([...filename].length, 100);
  t.ok(filename.endsWith('é😀.jsonl'));
});

t.test('sizes of parts', async (t) => {
  const { stack, begin, send } = await setup(t);
  const keys = () => storedKeys(stack, 'uploads/');
  const small = await begin(10);
  const tooMany = { status: 400, code: 'upload_too_many_bytes', param: 'data' };
  await refused(t, send(small.id, Buffer.alloc(11)), tooMany);
  t.equal((await keys()).length, 1, 'nothing is stored');
  // The client repeats a part when it lost the answer.
  for (let n = 0; n < 2; n++) await send(small.id, Buffer.alloc(10));
  await refused(t, send(small.id, Buffer.alloc(1)), tooMany);
  t.equal((await keys()).length, 3);

  const large = await begin(2 * MAX_PART_BYTES);
  await send(large.id, Buffer.alloc(MAX_PART_BYTES));
  const tooLarge = { status: 413, code: 'upload_part_too_large', param: 'data' };
  await refused(t, send(large.id, Buffer.alloc(MAX_PART_BYTES + 1)), tooLarge);
  t.equal((await keys()).length, 5);
});

t.test('forms without a part, and bodies that break off', async (t) => {
  const puts = new EventEmitter();
  const { stack, root, begin } = await setup(t, {
    wrap: ({ objects }) => ({
      objects: withMethod(objects, 'put', async (...args) => {
        puts.emit('begun');
        try {
          return await objects.put(...args);
        } catch (error) {
          puts.emit('failed');
          throw error;
        }
      }),
    }),
  });
  const { id } = await begin();
  const post = async (form: FormData) => {
    const url = `${root}/openai/v1/uploads/${id}/parts`;
    const headers = { authorization: `Bearer ${ADMIN_KEY}` };
    return (await fetch(url, { method: 'POST', headers, body: form })).json();
  };
  const formOf = (name: string, value: string | Blob) => {
    const form = new FormData();
    form.set(name, value as Blob);
    return form;
  };
  t.match(await post(new FormData()), { error: { code: 'missing_parameter', param: 'data' } });
  t.match(await post(formOf('file', new Blob(['x']))), { error: { param: 'file' } });
  t.match(await post(formOf('data', 'x')), { error: { param: 'data' } });

  const before = await storedKeys(stack);
  const socket = connect(Number(new URL(root).port), '127.0.0.1');
  await once(socket, 'connect');
  const head = [
    `POST /openai/v1/uploads/${id}/parts HTTP/1.1`,
    'host: a',
    `authorization: Bearer ${ADMIN_KEY}`,
    'content-type: multipart/form-data; boundary=b',
    'content-length: 1000',
    '',
    '--b',
    'content-disposition: form-data; name="data"; filename="part"',
    'content-type: application/octet-stream',
    '',
    'cut',
  ];
  const [begun, failed] = [once(puts, 'begun'), once(puts, 'failed')];
  socket.write(head.join('\r\n'));
  await begun;
  socket.destroy();
  await failed;
  t.same(await storedKeys(stack), before, 'half a part is not stored');
});

t.test('a malformed form is refused, and stores nothing', async (t) => {
  const { stack, root, begin } = await setup(t);
  const { id } = await begin();
  const before = await storedKeys(stack);
  const begun = '--zf\r\ncontent-disposition: form-data; name="data"; filename="part"\r\n\r\nabc';
  for (const path of [`uploads/${id}/parts`, 'files'])
    for (const [type, body] of [
      ['multipart/form-data; boundary=zf', '"'],
      ['multipart/form-data; boundary=zf', ''],
      ['multipart/form-data; boundary=zf', begun],
      ['multipart/form-data; boundary=zf', '--zf\r\nx'],
      ['multipart/form-data', begun],
    ] as const) {
      const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': type };
      const answer = await fetch(`${root}/openai/v1/${path}`, { method: 'POST', headers, body });
      t.equal(answer.status, 400, `${path} ${type} ${body}`);
      t.match(await answer.json(), { error: { type: 'invalid_request_error', message: /form|file/ } });
    }
  t.same(await storedKeys(stack), before);
});
