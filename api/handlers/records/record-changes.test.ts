import t from 'tap';
import { ulid } from 'ulid';
import { datasetDocumentKey, type NewApiKey, type Problem, type Webhook } from '../../../contracts/index.js';
import { testModel } from '../../../formats/testing/models.js';
import { startTestStack } from '../../testing/stack.js';

const TEXT = 'to be or not to be, that is the question. '.repeat(20);

t.test('changes of datasets, models, keys and webhooks', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { store, objects } = stack;
  const dataset = await stack.upload(TEXT);
  const model = testModel(`mdl_${ulid()}`);
  await store.putModel(model);
  const post = (url: string, payload: object) => stack.request({ method: 'POST', url, payload });
  const key = (await post('/v1/api-keys', { name: 'ci', scopes: ['jobs:read'] })).json<NewApiKey>();
  const webhook = (await post('/v1/webhooks', { url: 'https://hooks.example.com/' })).json<Webhook>();
  const patch = (url: string, payload: object, headers = {}) =>
    stack.request({ method: 'PATCH', url, payload, headers });

  const document = async (): Promise<unknown> =>
    JSON.parse((await objects.get(datasetDocumentKey(dataset.id))).toString());

  const unknownChange = (url: string) => (url.includes('webhooks') ? { description: 'a' } : { name: 'a' });

  const urls = {
    dataset: `/v1/datasets/${dataset.id}`,
    model: `/v1/models/${model.id}`,
    key: `/v1/api-keys/${key.id}`,
    webhook: `/v1/webhooks/${webhook.id}`,
  };
  const changes = [
    [urls.dataset, { name: 'renamed', description: 'of 1603' }],
    [urls.model, { name: 'renamed', description: 'the base' }],
    [urls.key, { name: 'renamed', expires_at: '2099-01-01T00:00:00.000Z', requests_per_minute: 7 }],
    [
      urls.webhook,
      { url: 'https://hooks.example.com/v2', description: 'on call', events: ['job.*'], enabled: false },
    ],
  ] as const;

  t.test('a change is returned and stored, other fields stay', async (t) => {
    for (const [url, change] of changes) {
      const before = (await stack.request({ url })).json<Record<string, unknown>>();
      const reply = await patch(url, change);
      t.equal(reply.statusCode, 200, reply.body);
      t.strictSame(reply.json(), { ...before, ...change }, url);
      const after = await stack.request({ url });
      t.strictSame(after.json(), { ...before, ...change }, url);
      t.equal(after.headers.etag, reply.headers.etag, url);
    }
    t.match(await document(), { dataset: { name: 'renamed' } }, 'also for a recovery');
  });

  t.test('lists find a record only by its new name', async (t) => {
    const named = async (list: string, name: string) =>
      (await stack.request({ url: `/v1/${list}?name=${name}` }))
        .json<{ data: { id: string }[] }>()
        .data.map(({ id }) => id);
    t.strictSame(await named('datasets', 'renamed'), [dataset.id]);
    t.strictSame(await named('datasets', dataset.name), []);
    t.strictSame(await named('models', 'renamed'), [model.id]);
    t.strictSame(await named('api-keys', 'renamed'), [key.id]);
    t.strictSame(await named('api-keys', 'ci'), []);
  });

  t.test('If-Match refuses a record that has changed meanwhile', async (t) => {
    for (const [url, change] of changes) {
      const { etag } = (await stack.request({ url })).headers;
      const next = { ...change, ...('name' in change ? { name: 'third' } : { description: 'third' }) };
      t.equal((await patch(url, next, { 'if-match': etag })).statusCode, 200, url);
      const late = await patch(url, change, { 'if-match': etag });
      t.match(late.json<Problem>(), { status: 412, code: 'version_mismatch' }, url);
      t.match((await stack.request({ url })).json(), next, url);
    }
  });

  t.test('concurrent changes: none is lost', async (t) => {
    const [url] = changes[0];
    await Promise.all([patch(url, { name: 'fourth' }), patch(url, { description: 'fourth' })]);
    t.match((await stack.request({ url })).json(), { name: 'fourth', description: 'fourth' });
    t.match(await document(), { dataset: { name: 'fourth', description: 'fourth' } });
  });

  t.test('fields that cannot change, and unknown records', async (t) => {
    for (const [url] of changes) {
      for (const body of [{}, { id: 'other' }, { name: null }, { created_at: '2020-01-01T00:00:00.000Z' }]) {
        const reply = await patch(url, body);
        t.match(
          reply.json<Problem>(),
          { status: 422, code: 'validation_failed' },
          `${url} ${JSON.stringify(body)}`,
        );
      }
      const unknown = url.replace(/_.*/, `_${'0'.repeat(26)}`);
      t.equal((await patch(unknown, unknownChange(url))).statusCode, 404, unknown);
    }
    const past = await patch(urls.key, { expires_at: '2020-01-01T00:00:00Z' });
    t.match(past.json<Problem>(), {
      code: 'validation_failed',
      errors: [{ pointer: '/expires_at', code: 'time_in_past' }],
    });
  });
});
