import t from 'tap';
import type { Webhook, WebhookWithSecret } from '../../../contracts/index.js';
import { smallSpec, startTestStack } from '../../testing/stack.js';

const URL = 'https://hooks.example.com/zerofleet';
const UNKNOWN = `wh_${'0'.repeat(26)}`;

t.test('created, read, listed and deleted', async (t) => {
  const { request, close } = await startTestStack();
  t.teardown(close);
  const create = (payload: object) => request({ method: 'POST', url: '/v1/webhooks', payload });
  const made = await create({ url: URL });
  t.equal(made.statusCode, 201);
  const { secret, ...webhook } = made.json<WebhookWithSecret>();
  t.equal(made.headers.location, `/v1/webhooks/${webhook.id}`);
  t.match(webhook, {
    url: URL,
    description: '',
    events: ['*'],
    jobs: 'all',
    secrets: [{ expires_at: null }],
  });
  t.match(secret, /^whsec_/);
  t.same((await request({ url: `/v1/webhooks/${webhook.id}` })).json(), webhook);

  await create({ url: URL, description: 'b', events: ['job.state', 'checkpoint.*'], jobs: 'named' });
  await create({ url: URL, description: 'c' });
  const first = (await request({ url: '/v1/webhooks?limit=2' })).json<{
    data: Webhook[];
    next_cursor: string;
  }>();
  t.match(first.data, [{ description: 'c' }, { description: 'b', jobs: 'named' }]);
  const rest = await request({ url: `/v1/webhooks?limit=2&after=${first.next_cursor}` });
  t.same(rest.json(), { data: [webhook], next_cursor: null });

  await create({ url: `${URL}/2` });
  const named = await request({ url: `/v1/webhooks?limit=1&url=${encodeURIComponent(URL)}/2` });
  t.match(named.json(), { data: [{ url: `${URL}/2` }], next_cursor: null });
  const begun = await request({ url: `/v1/webhooks?id_prefix=${webhook.id}` });
  t.same(begun.json(), { data: [webhook], next_cursor: null });

  t.same((await request({ url: `/v1/webhooks/${webhook.id}/deliveries` })).json(), {
    data: [],
    next_cursor: null,
  });
  const remove = () => request({ method: 'DELETE', url: `/v1/webhooks/${webhook.id}` });
  t.equal((await remove()).statusCode, 204);
  t.match((await remove()).json(), { code: 'webhook_not_found' });
});

t.test('unknown webhooks', async (t) => {
  const { request, close } = await startTestStack();
  t.teardown(close);
  for (const [method, path] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/rotate-secret'],
    ['GET', '/deliveries'],
  ] as const) {
    const reply = await request({ method, url: `/v1/webhooks/${UNKNOWN}${path}` });
    t.match(reply.json(), { code: 'webhook_not_found', status: 404 });
  }
});

t.test("another project's webhooks are not found", async (t) => {
  const { request, headersIn, close } = await startTestStack();
  t.teardown(close);
  const headers = await headersIn('team-b');
  const { id } = (
    await request({ method: 'POST', url: '/v1/webhooks', payload: { url: URL } })
  ).json<Webhook>();
  t.same((await request({ url: '/v1/webhooks', headers })).json(), { data: [], next_cursor: null });
  for (const [method, path] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/rotate-secret'],
    ['GET', '/deliveries'],
    ['POST', `/deliveries/dlv_${'0'.repeat(26)}/redeliver`],
  ] as const) {
    const reply = await request({ method, url: `/v1/webhooks/${id}${path}`, headers });
    t.equal(reply.statusCode, 404, `${method} ${path}`);
  }
  t.equal((await request({ url: `/v1/webhooks/${id}` })).statusCode, 200);
});

t.test('refused URLs', async (t) => {
  const { request, close } = await startTestStack();
  t.teardown(close);
  const refused = [
    'http://hooks.example.com/',
    'https://127.0.0.1/',
    'https://[::ffff:10.0.0.1]/',
    'https://a:b@c.example/',
  ];
  for (const url of refused) {
    const reply = await request({ method: 'POST', url: '/v1/webhooks', payload: { url } });
    t.match(
      reply.json(),
      { code: 'validation_failed', errors: [{ pointer: '/url', code: 'webhook_url_refused' }] },
      url,
    );
  }
});

t.test('scopes', async (t) => {
  const { request, headersOf, close } = await startTestStack();
  t.teardown(close);
  const reader = await headersOf('jobs:read');
  t.equal((await request({ url: '/v1/webhooks', headers: reader })).statusCode, 200);
  const create = { method: 'POST', url: '/v1/webhooks', payload: { url: URL } } as const;
  t.equal((await request({ ...create, headers: reader })).statusCode, 403);
  t.equal((await request({ ...create, headers: await headersOf('jobs:write') })).statusCode, 201);
});

t.test('a project has a hundred at most', async (t) => {
  const { request, close } = await startTestStack();
  t.teardown(close);
  const create = () => request({ method: 'POST', url: '/v1/webhooks', payload: { url: URL } });
  for (let made = 0; made < 100; made += 1) t.equal((await create()).statusCode, 201);
  t.match((await create()).json(), { code: 'too_many_webhooks', status: 409 });
});

t.test('a job must name existing webhooks', async (t) => {
  const { request, upload, close } = await startTestStack();
  t.teardown(close);
  const { id } = (
    await request({ method: 'POST', url: '/v1/webhooks', payload: { url: URL, jobs: 'named' } })
  ).json<Webhook>();
  const { id: dataset } = await upload('to be or not to be, that is the question. '.repeat(20));
  const create = (webhooks: string[]) =>
    request({ method: 'POST', url: '/v1/jobs', payload: { ...smallSpec(dataset), notify: { webhooks } } });
  t.match((await create([id])).json(), { spec: { notify: { webhooks: [id] } } });
  t.match((await create([id, UNKNOWN])).json(), {
    code: 'validation_failed',
    errors: [{ pointer: '/notify/webhooks/1', code: 'webhook_not_found' }],
  });
});
