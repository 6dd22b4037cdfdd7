/** The client against the real API: calls every method once, and every operation of the contract has one. */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { parse } from 'yaml';
import { answerCall, createSession } from '../../api/testing/sessions.js';
import { ADMIN_KEY, smallSweep, startTestStack } from '../../api/testing/stack.js';
import { ApiError, collect, Zerofleet } from '../../clients/typescript/index.js';
import type { SweepSpec } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { checkpointMethods, jobMethods } from './job-methods.js';

const TEXT = 'to be or not to be, that is the question. '.repeat(40);

async function stackAndClient(t: Test) {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const asked = new Set<string>();
  const client = new Zerofleet({
    baseUrl: await stack.listen(),
    apiKey: ADMIN_KEY,
    retry: { tries: 1 },
    fetch: (input, init) => {
      if (input instanceof Request) asked.add(`${input.method} ${new URL(input.url).pathname}`);
      return fetch(input, init);
    },
  });
  return { stack, client, asked };
}

t.test('all methods', async (t) => {
  const { stack, client, asked } = await stackAndClient(t);

  await t.test('datasets', async (t) => {
    const whole = await client.datasets.create('whole', TEXT);
    t.strictSame(await client.datasets.get(whole.id), whole);
    const pieces = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < TEXT.length; at += 100)
          controller.enqueue(new TextEncoder().encode(TEXT.slice(at, at + 100)));
        controller.close();
      },
    });
    const streamed = await client.datasets.create('streamed', pieces);
    t.equal(streamed.digest, whole.digest);
    const lines = await client.datasets.create('lines', '{"text":"a"}\n{"text":"b"}\n', 'jsonl');
    t.match(lines, { format: 'jsonl', num_documents: 2 });
    const names = [];
    for await (const { name } of client.datasets.list()) names.push(name);
    t.strictSame(names.sort(), ['lines', 'streamed', 'whole']);
    await t.rejects(client.datasets.register('far', 's3://far/a.txt'), { code: 'dataset_uri_refused' });
    const bytes = new TextEncoder().encode(TEXT);
    const session = await client.datasets.uploads.begin({
      name: 'parts',
      bytes: bytes.length,
      digest: whole.digest,
    });
    await t.rejects(client.datasets.uploads.complete(session.id), { code: 'upload_incomplete' });
    t.match(await client.datasets.uploads.urls(session.id), { parts: [{ part_number: 1 }] });
    const [progress] = [await client.datasets.uploads.get(session.id)];
    t.match(progress, { num_parts: 1, received_parts: [], dataset_id: null });
    const inParts = await client.datasets.uploads.resume(session.id, (begin, end) => bytes.slice(begin, end));
    t.match(inParts, { name: 'parts', digest: whole.digest });
    t.match(await client.datasets.uploads.get(session.id), { received_parts: [], dataset_id: inParts.id });
    await client.datasets.uploads.delete(session.id);
    await client.datasets.delete(inParts.id);
    t.equal(
      await new Response(await client.datasets.content(lines.id, { from: 1 })).text(),
      (await new Response(await client.datasets.content(lines.id)).text()).slice(1),
    );
    t.match(await client.datasets.update(lines.id, { description: 'b' }), { description: 'b' });
    await client.datasets.delete(lines.id);
    await t.rejects(client.datasets.get(lines.id), { code: 'dataset_not_found', status: 404 });
  });

  await t.test('models', async (t) => {
    await t.rejects(client.models.create('m', new Uint8Array(1024)), ApiError);
    const unknown = `mdl_${'0'.repeat(26)}`;
    await t.rejects(client.models.get(unknown), { code: 'model_not_found' });
    await t.rejects(client.models.update(unknown, { name: 'b' }), { code: 'model_not_found' });
    await t.rejects(client.models.delete(unknown), { code: 'model_not_found' });
    await t.rejects(client.samples.create(unknown, { prompt: 'a' }), { code: 'model_not_found' });
    for await (const model of client.models.list()) t.fail(model.id);
  });

  await t.test('jobs', (t) => jobMethods(t, stack, client));
  await t.test('checkpoints', (t) => checkpointMethods(t, stack, client));

  await t.test('API keys', async (t) => {
    const { secret, ...made } = await client.apiKeys.create({ name: 'ci', scopes: ['jobs:read'] });
    t.match(secret, /^zf_/);
    t.strictSame(await client.apiKeys.get(made.id), made);
    t.match(await client.apiKeys.update(made.id, { name: 'ci-2' }), { name: 'ci-2' });
    const rotated = await client.apiKeys.rotate(made.id, 60);
    t.not(rotated.secret, secret);
    t.not(rotated.previous_secret_until, null);
    const ids = [];
    for await (const { id } of client.apiKeys.list()) ids.push(id);
    t.equal(ids[0], made.id);
    for await (const { id } of client.apiKeys.list({ project: 'unknown' })) t.fail(id);
    await client.apiKeys.revoke(made.id);
    await t.rejects(client.apiKeys.get(made.id), { code: 'api_key_not_found', status: 404 });
    const operations = [];
    for await (const { operation } of client.audit({ resource: made.id })) operations.push(operation);
    t.strictSame(operations, ['revokeApiKey', 'rotateApiKey', 'updateApiKey', 'createApiKey']);
  });

  await t.test('browser sessions', async (t) => {
    const { sessions, http } = client;
    t.strictSame(await sessions.methods(), { oidc: null });
    const { code } = await sessions.code();
    const signedIn = await http.POST('/v1/sessions', { body: { code } });
    t.match(signedIn.data?.me, { api_key: { name: 'test' }, project: { name: 'default' } });
    t.equal((await http.DELETE('/v1/sessions/current')).response.status, 204);
    const { url, expires_at } = await sessions.address();
    t.ok(url.startsWith(`${client.options.baseUrl}/#/sign-in/zf_code_`));
    t.ok(Date.parse(expires_at) > Date.now());
    t.strictSame(await sessions.users(), []);
    t.strictSame(await sessions.users('unknown'), []);
    await sessions.endAll();
    t.equal(
      (await http.POST('/v1/sessions', { body: { code: url.split('/').at(-1) } })).response.status,
      401,
    );
  });

  await t.test('sessions of another key', async (t) => {
    const { secret, id } = await client.apiKeys.create({ name: 'other', scopes: ['jobs:read'] });
    const other = new Zerofleet({ ...client.options, apiKey: secret });
    const { code } = await other.sessions.code();
    await client.sessions.endOf(id);
    t.equal((await client.http.POST('/v1/sessions', { body: { code } })).response.status, 401);
    await client.apiKeys.revoke(id);
    await t.rejects(client.sessions.endOf(id), { code: 'principal_not_found', status: 404 });
  });

  await t.test('shares', async (t) => {
    const { id: jobId } = await stack.createJob();
    const { url, token, ...made } = await client.shares.create(jobId, { description: 'a note' });
    t.equal(url, `${client.options.baseUrl}/#/shared/${token}`);
    t.strictSame(await client.shares.list(jobId), [made]);
    const viewer = new Zerofleet({ ...client.options, apiKey: token });
    t.match(await viewer.me(), { share: made, api_key: null, project: null });
    t.equal((await viewer.jobs.get(jobId)).id, jobId);
    await t.rejects(viewer.jobs.pause(jobId), { code: 'outside_share', status: 403 });
    await client.shares.revoke(jobId, made.id);
    await t.rejects(viewer.me(), { code: 'unauthenticated' });
    await t.rejects(client.shares.revoke(jobId, made.id), { code: 'share_not_found' });
  });

  await t.test('webhooks', async (t) => {
    const { webhooks } = client;
    const made = await webhooks.create({ url: 'https://hooks.example.com/', events: ['job.*'] });
    const { secret, ...webhook } = made;
    t.strictSame(await webhooks.get(made.id), webhook);
    t.match(await webhooks.update(made.id, { enabled: false }), { enabled: false });
    t.not((await webhooks.rotateSecret(made.id, 60)).secret, secret);
    t.equal((await webhooks.get(made.id)).secrets.length, 2);
    for await (const { id } of webhooks.list()) t.equal(id, made.id);
    for await (const delivery of webhooks.deliveries(made.id)) t.fail(delivery.id);
    t.match(await webhooks.ping(made.id), { state: 'pending', message: { type: 'webhook.ping' } });
    const unknown = `dlv_${'0'.repeat(26)}`;
    await t.rejects(webhooks.redeliver(made.id, unknown), { code: 'delivery_not_found' });
    await webhooks.delete(made.id);
    await t.rejects(webhooks.get(made.id), { code: 'webhook_not_found' });
  });

  await t.test('projects', async (t) => {
    t.match(await client.projects.put('team-b', { max_jobs: 2 }), {
      quota: { max_jobs: 2, max_ranks: null },
    });
    t.match(await client.projects.get('team-b'), { name: 'team-b', used: { jobs: 0 } });
    t.strictSame(
      (await client.projects.list()).map(({ name }) => name),
      ['default', 'team-b'],
    );
    t.match(await client.projects.usage(), { project: 'default', jobs: { paused: Number } });
    t.match(await client.projects.setHubToken('hf_token_of_a_test'), { set_at: String });
    t.match(await client.projects.setHubToken(null), { set_at: null });
    t.strictSame(await client.projects.hubToken(), { set_at: null });
  });

  await t.test('the service', async (t) => {
    t.match(await client.health(), { status: 'ok' });
    t.match(await client.readiness(), { status: 'ready' });
    t.match(await client.me(), { api_key: { builtin: false }, project: { name: 'default' } });
    t.match(await client.pools(), [{ name: 'default', workers: 0 }]);
    t.strictSame(await client.workers(), []);
    t.match(await client.metrics(), /zerofleet_pool_workers\{pool="default"\} 0/);
  });

  await t.test('calls', async (t) => {
    const { id } = await createSession(stack);
    t.match(await client.calls.put(id, 1, { type: 'save_state' }), { number: 1, state: 'pending' });
    t.same(await client.calls.get(id, 1), { type: 'save_state' });
    t.same(await client.calls.answer(id, 1), { number: 1, state: 'pending' });
    const waiting = client.calls.result(id, 1);
    const result = { error: { code: 'gradients_pending', message: 'update first' } };
    await answerCall(stack, id, 1, result);
    t.same(await waiting, result);
    t.match(await collect(client.calls.list(id)), [{ number: 1, type: 'save_state', state: 'done' }]);
    await t.rejects(client.calls.rollout(id), { code: 'no_rollouts' });
  });

  await t.test('sweeps', async (t) => {
    const { sweeps } = client;
    const dataset = await client.datasets.create('for sweeps', TEXT);
    const spec = smallSweep(dataset.id) as SweepSpec;
    t.equal((await sweeps.dryRun(spec)).runs.length, 2);
    const made = await sweeps.create(spec);
    t.match(made, { name: 'rates', state: 'running', runs: [{ state: 'waiting' }, { state: 'waiting' }] });
    t.strictSame([await collect(sweeps.list()), await sweeps.get(made.id)], [[made], made]);
    t.match(await sweeps.pause(made.id), { state: 'paused' });
    t.match(await sweeps.resume(made.id), { state: 'running' });
    const ended = await sweeps.cancel(made.id);
    t.match(ended, { id: made.id, state: /cancel/ });
    await t.rejects(sweeps.delete(`swp_${'0'.repeat(26)}`), { code: 'sweep_not_found' });
  });

  await t.test('every operation of the contract was called', async (t) => {
    const contract = parse(readFileSync(`${projectRoot()}/openapi.yaml`, 'utf8')) as {
      paths: Record<string, Record<string, unknown>>;
    };
    for (const [path, methods] of Object.entries(contract.paths)) {
      const pattern = new RegExp(`^${path.replaceAll(/\{[a-z_]+\}/g, '[^/]+')}$`);
      for (const method of ['get', 'post', 'patch', 'delete', 'put']) {
        if (!(method in methods) || path === '/openapi.yaml') continue;
        const hit = [...asked].some((request) => {
          const [verb, at = ''] = request.split(' ');
          return verb === method.toUpperCase() && pattern.test(at);
        });
        t.ok(hit, `${method} ${path}`);
      }
    }
  });
});
