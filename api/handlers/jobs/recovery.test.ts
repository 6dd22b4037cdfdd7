import t from 'tap';
import type { Job, Model } from '../../../contracts/index.js';
import { recover } from '../../../control/recovery/recover.js';
import { modelFolder, tarOf } from '../../../formats/testing/models.js';
import { ObjectStoreError } from '../../../platform/object-store/index.js';
import { upload } from '../../testing/model-uploads.js';
import { ADMIN_KEY, smallSpec, startTestStack, withMethod } from '../../testing/stack.js';

t.test('after a loss of Redis the API answers as before', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const dataset = await stack.upload('some text to train on, long enough for a sequence. '.repeat(10));
  const post = (url: string, payload: object = {}, headers = {}) =>
    stack.request({ method: 'POST', url, payload, headers });
  const get = async <T>(url: string) => (await stack.request({ url })).json<T>();

  const headers = { 'idempotency-key': 'once' };
  const job = (await post('/v1/jobs', smallSpec(dataset.id), headers)).json<Job>();
  const model = (await upload(stack, await tarOf(modelFolder()))).json<Model>();
  const paused = await stack.createJob();
  await post(`/v1/jobs/${paused.id}/pause`);
  const resumed = await stack.createJob();
  await post(`/v1/jobs/${resumed.id}/pause`);
  await post(`/v1/jobs/${resumed.id}/resume`, { ranks: 4 });
  const cancelled = await stack.createJob();
  await post(`/v1/jobs/${cancelled.id}/cancel`);

  await stack.redis.forget();
  const unusable: string[] = [];
  await recover({ store: stack.store, objects: stack.objects, onUnusable: (key) => unusable.push(key) });
  t.same(unusable, []);
  // The stack of `npm start` reads it from a file and does the same at its start.
  await stack.store.putApiKey(ADMIN_KEY, { name: 'test', scopes: ['admin', 'operator'] });

  t.same(await get(`/v1/datasets/${dataset.id}`), dataset);
  t.same(await get(`/v1/models/${model.id}`), model);
  const { spec, labels, name } = job;
  t.match(await get(`/v1/jobs/${job.id}`), {
    state: 'queued',
    attempt: 1,
    requested_ranks: 2,
    spec,
    labels,
    name,
  });
  t.match(await get(`/v1/jobs/${paused.id}`), { state: 'paused' });
  t.match(await get(`/v1/jobs/${resumed.id}`), { state: 'queued', requested_ranks: 4 });
  t.match(await get(`/v1/jobs/${cancelled.id}`), { state: 'cancelled' });

  const again = await post('/v1/jobs', smallSpec(dataset.id), headers);
  t.equal(again.headers['idempotent-replayed'], 'true');
  t.equal(again.json<Job>().id, job.id, 'a request repeated now creates no second job');
  t.equal((await post('/v1/jobs', { ...smallSpec(dataset.id), name: 'x' }, headers)).statusCode, 422);
});

t.test(
  'a job whose acceptance could not be stored is not acknowledged, and a repeated request stores it',
  async (t) => {
    let refuse = true;
    const stack = await startTestStack({
      wrap: ({ objects }) => ({
        objects: withMethod(objects, 'put', async (key, body, options) => {
          if (refuse && key.endsWith('/desired.json'))
            throw new ObjectStoreError('object_store_unavailable', 'it is unavailable');
          return objects.put(key, body, options);
        }),
      }),
    });
    t.teardown(() => stack.close());
    const dataset = await stack.upload('some text to train on, long enough for a sequence. '.repeat(10));
    const create = () =>
      stack.request({
        method: 'POST',
        url: '/v1/jobs',
        payload: smallSpec(dataset.id),
        headers: { 'idempotency-key': 'once' },
      });
    t.equal((await create()).statusCode, 503);
    refuse = false;
    const reply = await create();
    t.equal(reply.statusCode, 201);
    const { id } = reply.json<Job>();
    await stack.redis.forget();
    await recover({ store: stack.store, objects: stack.objects, onUnusable: (key) => t.fail(key) });
    t.match(await stack.store.getJob(id), { state: 'queued' });
  },
);

t.test('a version from before a loss of Redis matches no later version', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { id } = await stack.createJob();
  const url = `/v1/jobs/${id}`;
  const act = (action: string, headers = {}) =>
    stack.request({ method: 'POST', url: `${url}/${action}`, payload: {}, headers });
  await act('pause');
  const { etag = '' } = (await act('resume')).headers;
  const { state_version } = (await stack.request({ url })).json<Job>();
  await stack.loseRedis();
  await act('pause');
  t.match((await act('cancel', { 'if-match': etag })).json(), { code: 'version_mismatch', status: 412 });
  const waited = await stack.request({ url: `${url}?wait=1s&since_version=${state_version}` });
  t.ok(waited.json<Job>().state_version > state_version, 'a request that waits for a later version returns');
});

t.test(
  'a version that a failover lost is none of later, though as many changes were made since',
  async (t) => {
    const stack = await startTestStack();
    t.teardown(() => stack.close());
    const { id } = await stack.createJob();
    const url = `/v1/jobs/${id}`;
    const act = (action: string, headers = {}) =>
      stack.request({ method: 'POST', url: `${url}/${action}`, payload: {}, headers });
    await act('pause');
    const failOver = await stack.redis.leaveReplicaBehind();
    const resumed = await act('resume');
    const { etag = '' } = resumed.headers;
    const { state_version } = resumed.json<Job>();
    await failOver();
    const wait = () => stack.request({ url: `${url}?wait=60s&since_version=${state_version}` });
    t.match((await wait()).json(), { state: 'paused' }, 'who has seen the lost state hears of it at once');
    const other = await stack.request({ method: 'PATCH', url, payload: { priority: 3 } });
    t.match((await act('cancel', { 'if-match': etag })).json(), { code: 'version_mismatch', status: 412 });
    t.match((await wait()).json(), { spec: { priority: 3 } });
    const kept = { 'if-match': String(other.headers.etag) };
    t.equal((await act('cancel', kept)).statusCode, 202);
  },
);
