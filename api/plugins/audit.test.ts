import type { InjectOptions } from 'fastify';
import t, { type Test } from 'tap';
import {
  type AuditEntry,
  type Dataset,
  type NewApiKey,
  type Page,
  type Problem,
  ZerofleetError,
} from '../../contracts/index.js';
import { openJobStore } from '../../state/index.js';
import { startTestStack, type TestStackOptions } from '../testing/stack.js';

async function start(t: Test, options?: TestStackOptions) {
  const stack = await startTestStack(options);
  t.teardown(() => stack.close());
  const log = async (query = '', headers = {}) =>
    (await stack.request({ url: `/v1/audit-log${query}`, headers })).json<Page<AuditEntry>>();
  const send = (method: 'POST' | 'DELETE' | 'PATCH', url: string, more: InjectOptions = {}) =>
    stack.request({ method, url, ...more });
  return { stack, log, send };
}

t.test('mutating requests are in the log, executed or refused', async (t) => {
  const { stack, log, send } = await start(t);
  const job = await stack.createJob();
  const headers = await stack.headersOf('jobs:read');
  await send('POST', `/v1/jobs/${job.id}/cancel`, { headers });
  const cancelled = await send('POST', `/v1/jobs/${job.id}/cancel`);
  await send('POST', '/v1/jobs', { payload: { model: 1 } });
  await send('DELETE', '/v1/datasets/not-an-id-but-a-secret');
  const { data } = await log();
  t.match(data, [
    {
      operation: 'deleteDataset',
      resource: null,
      outcome: 'refused',
      status: 400,
      code: 'invalid_parameter',
    },
    { operation: 'createJob', resource: null, outcome: 'refused', status: 422, code: 'validation_failed' },
    {
      operation: 'cancelJob',
      resource: job.id,
      outcome: 'succeeded',
      status: 202,
      code: null,
      principal_name: 'test',
    },
    { operation: 'cancelJob', outcome: 'refused', status: 403, code: 'insufficient_scope' },
    { operation: 'createJob', resource: job.id, outcome: 'succeeded', status: 201 },
    { operation: 'createDataset', resource: job.spec.data.dataset, status: 201 },
  ]);
  t.equal(data.length, 6);
  t.equal(cancelled.statusCode, 202);
  t.match(data[0]?.request_id, /^req_/);
  t.not(data[2]?.principal_id, data[3]?.principal_id);

  t.test('by filters and pages', async (t) => {
    const ids = async (query: string) => (await log(query)).data.map(({ id }) => id);
    const all = data.map(({ id }) => id);
    t.same(await ids(`?principal_id=${data[3]?.principal_id}`), [all[3]]);
    t.same(await ids('?operation=createJob'), [all[1], all[4]]);
    t.same(await ids(`?resource=${job.id}`), [all[2], all[3], all[4]]);
    t.same(await ids('?since=2999-01-01T00:00:00Z'), []);
    t.same(await ids('?until=2020-01-01T00:00:00Z'), []);
    t.same(await ids('?since=2020-01-01T00:00:00Z&until=2999-01-01T00:00:00Z'), all);
    const first = await log('?limit=4');
    t.equal(first.next_cursor, all[3]);
    t.same(await log(`?limit=4&after=${first.next_cursor}`), { data: data.slice(4), next_cursor: null });
  });

  t.test('own project only', async (t) => {
    const theirs = await stack.headersIn('team-b');
    await send('POST', `/v1/jobs/${job.id}/pause`, { headers: theirs });
    t.match((await log('', theirs)).data, [{ operation: 'pauseJob', outcome: 'refused', status: 404 }]);
    t.equal((await log()).data.length, 6);
  });

  t.test('it is there after a restart of the API', async (t) => {
    const other = await openJobStore({ url: stack.redis.url });
    t.teardown(() => other.close());
    t.same((await other.listAudit('default')).data, data);
  });
});

t.test('reading requests and secrets are not in the log', async (t) => {
  const { stack, log, send } = await start(t);
  const job = await stack.createJob();
  await send('POST', '/v1/estimate', { payload: { spec: job.spec } });
  await stack.request({ url: `/v1/jobs/${job.id}` });
  const made = await send('POST', '/v1/api-keys', { payload: { name: 'ci', scopes: ['jobs:read'] } });
  const { id, secret } = made.json<NewApiKey>();
  const rotated = (await send('POST', `/v1/api-keys/${id}/rotate`, { payload: {} })).json<NewApiKey>();
  const text = JSON.stringify(await log());
  t.notMatch(text, /estimateMemory|getJob/);
  t.match(text, /createApiKey/);
  for (const hidden of [secret, rotated.secret, secret.slice(3), 'Bearer', 'zf_'])
    t.notOk(text.includes(hidden));
});

t.test('an entry is written before the answer; without a log the answer still comes', async (t) => {
  let written: string[] = [];
  let isBroken = false;
  const { send } = await start(t, {
    wrap: ({ store }) => ({
      store: {
        ...store,
        async appendAudit(project, entry) {
          if (isBroken) throw new ZerofleetError('job_store_unavailable', 'gone');
          await store.appendAudit(project, entry);
          written.push(entry.operation);
        },
      },
    }),
  });
  const upload = () =>
    send('POST', '/v1/datasets?name=a', { headers: { 'content-type': 'text/plain' }, payload: 'some text' });
  const { id } = (await upload()).json<Dataset>();
  t.same(written, ['createDataset']);
  written = [];
  isBroken = true;
  t.equal((await send('DELETE', `/v1/datasets/${id}`)).statusCode, 204);
  t.match((await send('DELETE', `/v1/datasets/${id}`)).json<Problem>(), { code: 'dataset_not_found' });
  t.same(written, []);
});
