import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { S3StandIn } from '../testing/s3-stand-in.js';
import { FileStore } from './file/store.js';
import { keepsCreateOnly } from './probe.js';
import { S3Store } from './s3/store.js';

function open(t: Test, endpoint: string): S3Store {
  const store = new S3Store({
    bucket: 'tests',
    prefix: '',
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    maxAttempts: 1,
  });
  t.teardown(() => store.close());
  return store;
}

t.test('a store that refuses to overwrite', async (t) => {
  const bucket = new S3StandIn();
  const door = await bucket.open();
  t.teardown(() => door.close());
  t.equal(await keepsCreateOnly(open(t, door.endpoint)), true);
  t.equal(bucket.objects.size, 0, 'the probe object is removed');
  const files = await FileStore.open(t.testdir(), {});
  t.equal(await keepsCreateOnly(files), true);
});

t.test('an object that cannot be removed is left to garbage collection', async (t) => {
  const files = await FileStore.open(t.testdir(), {});
  const failing = Object.assign(Object.create(files), {
    delete: async () => {
      throw new Error('the store is away');
    },
  });
  t.equal(await keepsCreateOnly(failing), true);
  const left = [];
  for await (const { key } of files.list('')) left.push(key);
  t.match(left, [/^uploads\/_probe\/[^/]+\/object$/]);
});

t.test('a store that overwrites, or does not answer', async (t) => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method}`);
    request.resume().on('end', () => response.writeHead(request.method === 'PUT' ? 200 : 204).end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  t.equal(await keepsCreateOnly(open(t, endpoint)), false);
  t.strictSame(seen, ['PUT', 'PUT', 'DELETE']);
  await t.rejects(keepsCreateOnly(open(t, 'http://127.0.0.1:1')), { code: 'object_store_unavailable' });
});
