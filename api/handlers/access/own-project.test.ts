import t from 'tap';
import { ulid } from 'ulid';
import type { Execution } from '../../../contracts/execution.js';
import type { Checkpoint, Me, NewApiKey, Page } from '../../../contracts/index.js';
import { startTestStack } from '../../testing/stack.js';
import { checkpointOf } from '../../testing/training.js';

t.test('a key can read its own properties and scopes', async (t) => {
  const stack = await startTestStack({ currency: 'EUR' });
  t.teardown(() => stack.close());
  const payload = { name: 'ci', scopes: ['datasets'], requests_per_minute: 500 };
  const made = (await stack.request({ method: 'POST', url: '/v1/api-keys', payload })).json<NewApiKey>();
  await stack.store.putQuota('default', { max_jobs: 7, max_ranks: null, max_storage_bytes: null });
  await stack.createJob();
  const reply = await stack.request({ url: '/v1/me', headers: { authorization: `Bearer ${made.secret}` } });
  t.match(reply.json<Me>(), {
    api_key: { id: made.id, name: 'ci', scopes: ['datasets'], requests_per_minute: 500 },
    project: { name: 'default', quota: { max_jobs: 7 }, used: { jobs: 1 } },
    currency: 'EUR',
  });
  t.notMatch(reply.body, made.secret);
  const unknown = await stack.request({ url: '/v1/me', headers: { authorization: `Bearer zf_${ulid()}` } });
  t.equal(unknown.statusCode, 401);
});

t.test('checkpoints of all jobs of a project, newest first', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { store } = stack;
  const list = async (query = '') =>
    (await stack.request({ url: `/v1/checkpoints${query}` })).json<Page<Checkpoint>>();
  t.same(await list(), { data: [], next_cursor: null });
  const made: Checkpoint[] = [];
  const [first, second] = [await stack.createJob(), await stack.createJob()];
  const executions = new Map<string, Execution>();
  for (const { id } of [first, second]) {
    const claim = await store.claimAttempt(id, 1, 'worker', 60_000);
    if (!claim.granted) throw new Error(claim.code);
    executions.set(id, claim.execution);
  }
  for (const [index, { id }] of [first, second, first, second].entries()) {
    const checkpoint = { ...checkpointOf(id, index + 1), id: `ckpt_${ulid(Date.now() + index)}` };
    await store.commitCheckpoint(id, executions.get(id) ?? '0-', checkpoint);
    made.unshift(checkpoint);
  }
  const ids = ({ data }: Page<Checkpoint>) => data.map(({ id }) => id);
  const all = made.map(({ id }) => id);
  t.strictSame(ids(await list()), all);
  const page = await list('?limit=3');
  t.strictSame(ids(page), all.slice(0, 3));
  t.strictSame(ids(await list(`?limit=3&after=${page.next_cursor}`)), all.slice(3));
  t.strictSame(ids(await list(`?id_prefix=${all[1]}`)), [all[1]]);

  await store.removeCheckpoint(first.id, executions.get(first.id) ?? '0-', `${all[3]}`);
  t.strictSame(ids(await list()), all.slice(0, 3), 'a checkpoint removed by retention is not listed');
  await store.finishJob(second.id, executions.get(second.id) ?? '0-', 'failed', { reason: 'rank_lost' });
  await stack.request({ method: 'DELETE', url: `/v1/jobs/${second.id}?artifacts=true` });
  t.strictSame(ids(await list()), [`${all[1]}`], 'checkpoints of a deleted job are not listed');

  const other = { name: 'other', scopes: ['jobs:read'] as const };
  await store.putApiKey('zf_other', { ...other, scopes: [...other.scopes], project: 'team-b' });
  const foreign = await stack.request({
    url: '/v1/checkpoints',
    headers: { authorization: 'Bearer zf_other' },
  });
  t.same(foreign.json(), { data: [], next_cursor: null });
});
