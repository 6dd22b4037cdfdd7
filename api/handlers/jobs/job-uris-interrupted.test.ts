/** Copies of S3 objects as data of jobs, whose client disconnects or that fail. */
import { EventEmitter, once } from 'node:events';
import t from 'tap';
import { DatasetSources } from '../../../platform/dataset-sources.js';
import { S3StandIn } from '../../../platform/testing/s3-stand-in.js';
import { startWithData as start, TEXT, URI } from '../../testing/data-bucket.js';
import { repeatAfterLeaving } from '../../testing/leaving-client.js';
import { ADMIN_KEY, smallSpec, startTestStack } from '../../testing/stack.js';

process.env.AWS_ACCESS_KEY_ID = 'test';
process.env.AWS_SECRET_ACCESS_KEY = 'test';

t.test('a copy continues after its client disconnects, and the next request waits for it', async (t) => {
  const events = new EventEmitter();
  const bucket = new S3StandIn();
  bucket.objects.set('a', TEXT);
  const door = await bucket.open();
  const real = new DatasetSources({
    allowed: [{ bucket: 'texts', prefix: '' }],
    s3Endpoint: door.endpoint,
  });
  let copies = 0;
  const stack = await startTestStack({
    sources: {
      list: (uri) => real.list(uri),
      async find(uri) {
        const object = await real.find(uri);
        return {
          ...object,
          async *read() {
            copies += 1;
            const goOn = once(events, 'go on');
            events.emit('reading');
            await goOn;
            yield* object.read();
          },
        };
      },
    },
  });
  t.teardown(async () => {
    await stack.close();
    await real.close();
    door.close();
  });
  const url = `${await stack.listen()}/v1/jobs`;
  const body = JSON.stringify({ ...smallSpec(''), data: { uri: 's3://texts/a' } });
  const headers = {
    authorization: `Bearer ${ADMIN_KEY}`,
    'content-type': 'application/json',
    'idempotency-key': 'x',
  };
  const reply = await repeatAfterLeaving(url, { headers, body }, events);
  t.equal(reply.status, 201);
  t.match(await reply.json(), { state: 'queued' });
  t.equal(copies, 1);
});

t.test('a failed copy leaves nothing, and the next request repeats it', async (t) => {
  let fail = true;
  const { post, datasets, stack } = await start(t, {
    store: (store) => ({
      ...store,
      async putDataset(dataset) {
        if (fail) throw new Error('the record is not written');
        return store.putDataset(dataset);
      },
    }),
  });
  t.equal((await post({ uri: URI }, { key: 'k' })).statusCode, 500);
  t.same(await datasets(), []);
  const left: string[] = [];
  for await (const { key } of stack.objects.list('datasets/')) left.push(key);
  t.same(left, []);
  fail = false;
  t.equal((await post({ uri: URI }, { key: 'k' })).statusCode, 201);
});
