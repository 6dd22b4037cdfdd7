import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { type Problem, ZerofleetError } from '../../../contracts/index.js';
import { modelFolder, TINY_CONFIG, tarOf } from '../../../formats/testing/models.js';
import { ObjectStoreError } from '../../../platform/object-store/index.js';
import { storedKeys, TAR, upload } from '../../testing/model-uploads.js';
import { ADMIN_KEY, startTestStack, withMethod } from '../../testing/stack.js';

t.test('a failing store or an unwritable record leaves nothing', async (t) => {
  for (const failing of ['WEIGHTS.json', 'record']) {
    const stack = await startTestStack({
      wrap: ({ objects, store }) => ({
        objects: withMethod(objects, 'put', (key, ...rest) => {
          if (key.endsWith(failing)) throw new ObjectStoreError('disk_full', 'secret detail');
          return objects.put(key, ...rest);
        }),
        store: failing === 'record' ? { ...store, putModel: () => Promise.reject(new Error('gone')) } : store,
      }),
    });
    t.teardown(() => stack.close());
    const reply = await upload(stack, await tarOf(modelFolder()));
    t.equal(reply.json<Problem>().code, failing === 'record' ? 'internal_error' : 'disk_full');
    t.strictSame(await storedKeys(stack), []);
    t.strictSame((await stack.store.listModels()).data, []);
  }
});

t.test("if the record's confirmation was lost, its files are kept", async (t) => {
  const stack = await startTestStack({
    wrap: ({ store }) => ({
      store: {
        ...store,
        putModel: async (model) => {
          await store.putModel(model);
          throw new ZerofleetError('job_store_unavailable', 'the connection was lost');
        },
      },
    }),
  });
  t.teardown(() => stack.close());
  const reply = await upload(stack, await tarOf(modelFolder()));
  t.equal(reply.json<Problem>().code, 'job_store_unavailable');
  const [model] = (await stack.store.listModels()).data;
  t.ok((await storedKeys(stack, `models/${model?.id}`)).length > 1);
});

t.test('over a connection', async (t) => {
  const stack = await startTestStack({ limits: { idle_connection_ms: 1_500 } });
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const archive = await tarOf(modelFolder({ shards: 4 }));
  const send = (headers: Record<string, string>) => {
    const client = httpRequest(`${base}/v1/models?name=x`, {
      method: 'POST',
      headers: { ...TAR, ...headers, authorization: `Bearer ${ADMIN_KEY}` },
      agent: false,
    });
    client.on('error', () => undefined);
    return client;
  };
  const untilStored = async (wanted: (keys: string[]) => boolean) => {
    while (!wanted(await storedKeys(stack))) await sleep(10);
  };

  for (const end of ['breaks off', 'stops'] as const) {
    t.test(`an upload that ${end} in the middle leaves nothing`, async (t) => {
      const client = send({ 'content-length': String(archive.length) });
      const closed = new Promise((resolve) => client.on('close', resolve));
      client.write(archive.subarray(0, archive.length / 2));
      await untilStored((keys) => keys.length > 2);
      if (end === 'breaks off') client.destroy();
      await closed;
      await untilStored((keys) => keys.length === 0);
      t.strictSame((await stack.store.listModels()).data, []);
    });
  }

  t.test('an invalid shard is refused before the following shards are sent', async (t) => {
    const client = send({ 'transfer-encoding': 'chunked' });
    const config = Buffer.from(JSON.stringify({ ...TINY_CONFIG, hidden_size: 64 }));
    const files = [...modelFolder().set('config.json', config)];
    client.write((await tarOf(files)).subarray(0, -4000));
    const [reply] = await once(client, 'response');
    t.equal(reply.statusCode, 422);
    client.destroy();
  });
});
