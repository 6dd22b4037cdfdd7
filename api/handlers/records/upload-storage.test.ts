/** Storage quota of uploads in parts: reservation and release. */
import t from 'tap';
import type { Dataset, Problem, ProjectUsage, Upload } from '../../../contracts/index.js';
import { collectGarbage } from '../../../control/garbage/collect.js';
import { recover } from '../../../control/recovery/recover.js';
import { PART, startUploads, TEXT } from '../../testing/part-uploads.js';
import { ADMIN_KEY } from '../../testing/stack.js';

t.test('announced bytes count as storage until the upload completes or is deleted', async (t) => {
  const { stack, put, complete } = await startUploads(t);
  const { store, objects } = stack;
  const limit = async (maxStorageBytes: number) =>
    store.putQuota('default', { max_jobs: null, max_ranks: null, max_storage_bytes: maxStorageBytes });
  const storage = async () => (await stack.request({ url: '/v1/usage' })).json<ProjectUsage>().storage;
  const post = (bytes: number) =>
    stack.request({ method: 'POST', url: '/v1/uploads', payload: { name: 'x', bytes } });
  const remove = (id: string) => stack.request({ method: 'DELETE', url: `/v1/uploads/${id}` });
  await limit(1000);

  const { id } = (await post(600)).json<Upload>();
  t.match(await storage(), { upload_bytes: 600, dataset_bytes: 0, total_bytes: 600 });
  const refused = (await post(401)).json<Problem>();
  t.match(refused, { status: 403, code: 'storage_quota_exceeded', detail: /stores 600 bytes/ });
  const direct = await stack.request({
    method: 'POST',
    url: '/v1/datasets?name=x',
    headers: { 'content-type': 'text/plain' },
    payload: 'x'.repeat(401),
  });
  t.match(direct.json<Problem>(), { code: 'storage_quota_exceeded' }, 'less is left for other uploads');
  const atOnce = await Promise.all(Array.from({ length: 8 }, () => post(100)));
  t.equal(
    atOnce.filter(({ statusCode }) => statusCode === 201).length,
    4,
    'concurrent requests cannot exceed it',
  );
  t.match(await storage(), { upload_bytes: 1000 });

  await put(id, 1, Buffer.alloc(PART, 'a'));
  await put(id, 2, Buffer.alloc(100, 'a'));
  const dataset = (await complete(id)).json<Dataset>();
  t.match(
    await storage(),
    { upload_bytes: 400, dataset_bytes: 600, total_bytes: 1000 },
    'its storage was reserved',
  );
  t.equal((await complete(id)).json<Dataset>().id, dataset.id);
  await remove(id);
  t.match(await storage(), { upload_bytes: 400, dataset_bytes: 600 });

  const [first, second, third] = atOnce
    .filter(({ statusCode }) => statusCode === 201)
    .map((reply) => reply.json<Upload>().id);
  await remove(`${first}`);
  t.match(await storage(), { upload_bytes: 300 });
  // Simulates a server that died after it removed the objects.
  await objects.delete([`uploads/default/${second}/upload.json`]);
  await collectGarbage({ store, objects, grace_ms: 60_000 });
  t.match(await storage(), { upload_bytes: 300 }, 'its write may be in progress');
  await collectGarbage({ store, objects, grace_ms: -1000, dry_run: true });
  t.match(await storage(), { upload_bytes: 300 });

  await stack.redis.forget();
  await stack.store.putApiKey(ADMIN_KEY, { name: 'test', scopes: ['admin', 'operator'] });
  await recover({ store, objects, onUnusable: (key) => t.fail(key) });
  t.match(await storage(), { upload_bytes: 200, dataset_bytes: 600 }, 'also after a loss of the records');
  t.equal((await stack.request({ url: `/v1/uploads/${third}` })).statusCode, 200);
  await collectGarbage({ store, objects, grace_ms: -1000 });
  t.match(await storage(), { upload_bytes: 0, dataset_bytes: 600 }, 'collected uploads no longer count');
});

t.test('an idle upload is collected, an active one is not', async (t) => {
  const { stack, begin, put, partOf, keys } = await startUploads(t);
  // Nothing is collected while Redis is empty.
  await stack.createJob();
  const { id } = await begin();
  await put(id, 1, partOf(TEXT, 1));
  const { store, objects } = stack;
  await collectGarbage({ store, objects, grace_ms: 60_000 });
  t.equal((await keys('uploads/')).length, 2);
  await collectGarbage({ store, objects, grace_ms: -1000 });
  t.same(await keys('uploads/'), []);
});
