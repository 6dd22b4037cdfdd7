/** Datasets, API keys and the readiness check. */
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { testModel } from '../../formats/testing/models.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import type { NamedPageRequest } from '../core/paging.js';
import { type JobStore, openJobStore } from '../job-store.js';
import type { JobFilter } from '../jobs/job-list.js';
import { createTestJob, testDataset, testSpec } from '../testing/jobs.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

async function freshStore(t: Test): Promise<JobStore> {
  const store = await openJobStore({ url: server.url, prefix: `{${ulid()}}` });
  t.teardown(() => store.close());
  return store;
}

t.test('datasets', async (t) => {
  const store = await freshStore(t);
  const all = [testDataset(), testDataset(), testDataset()];
  for (const dataset of all) await store.putDataset(dataset);
  const newestFirst = all
    .map(({ id }) => id)
    .sort()
    .reverse();
  t.same(await store.getDataset(all[0]?.id ?? ''), all[0]);
  t.equal(await store.getDataset('ds_none'), null);
  const page = await store.listDatasets({ limit: 2 });
  t.same(
    page.data.map(({ id }) => id),
    newestFirst.slice(0, 2),
  );
  const rest = await store.listDatasets({ limit: 2, after: page.next_cursor ?? '' });
  t.same(
    rest.data.map(({ id }) => id),
    newestFirst.slice(2),
  );
  t.equal(rest.next_cursor, null);
  t.equal(await store.deleteDataset(newestFirst[0] ?? ''), true);
  t.equal(await store.deleteDataset(newestFirst[0] ?? ''), false);
  t.equal(await store.getDataset(newestFirst[0] ?? ''), null);
  t.equal((await store.listDatasets()).data.length, 2);
  await t.rejects(store.listDatasets({ limit: 0 }), { code: 'invalid_parameter' });
});

t.test('datasets, models and keys by name and by id prefix', async (t) => {
  const store = await freshStore(t);
  const datasets = ['a', 'b', 'a'].map((name) => ({ ...testDataset(), name }));
  const models = ['a', 'b', 'a'].map((name) => ({ ...testModel(`mdl_${ulid()}`), name }));
  for (const dataset of datasets) await store.putDataset(dataset);
  for (const model of models) await store.putModel(model);
  const keys = [];
  for (const name of ['a', 'b', 'a'])
    keys.push(await store.putApiKey(`zf_${ulid()}`, { name, scopes: ['admin'] }));
  for (const { list, all, remove } of [
    { list: store.listDatasets, all: datasets, remove: store.deleteDataset },
    { list: store.listModels, all: models, remove: store.deleteModel },
    { list: store.listApiKeys, all: keys, remove: store.revokeApiKey },
  ]) {
    const ids = async (page: NamedPageRequest) => (await list(page)).data.map(({ id }) => id);
    const [older, newer] = all
      .filter(({ name }) => name === 'a')
      .map(({ id }) => id)
      .sort() as [string, string];
    t.same(await ids({ name: 'a' }), [newer, older]);
    const first = await list({ name: 'a', limit: 1 });
    t.same(await ids({ name: 'a', after: first.next_cursor ?? '' }), [older]);
    t.same(await ids({ id_prefix: older, limit: 5 }), [older]);
    t.same(await ids({ name: 'c' }), []);
    await remove(newer);
    t.same(await ids({ name: 'a' }), [older]);
  }
  const secret = `zf_${ulid()}`;
  await store.putApiKey(secret, { name: 'before', scopes: ['admin'] });
  const put = await store.putApiKey(secret, { name: 'after', scopes: ['admin'], project: 'team-b' });
  t.same((await store.listApiKeys({ name: 'before' })).data, []);
  t.same((await store.listApiKeys({ name: 'after', project: 'team-b' })).data, [put]);
});

t.test('a model that was copied from a folder is found while its record exists', async (t) => {
  const store = await freshStore(t);
  const source = { uri: 's3://zoo/tiny', version: `sha256:${'0'.repeat(64)}` };
  const [first, second] = [`mdl_${ulid()}`, `mdl_${ulid()}`].map((id) => ({ ...testModel(id), source }));
  if (!first || !second) return;
  await store.putModel(first);
  await store.putModel(second);
  t.equal((await store.findModelCopy('default', source))?.id, first.id, 'jobs name it already');
  t.equal(await store.findModelCopy('team-b', source), null);
  t.equal(await store.findModelCopy('default', { ...source, version: `sha256:${'1'.repeat(64)}` }), null);
  await store.deleteModel(second.id);
  t.equal((await store.findModelCopy('default', source))?.id, first.id);
  await store.deleteModel(first.id);
  t.equal(await store.findModelCopy('default', source), null);
  await store.putModel(second);
  t.equal((await store.findModelCopy('default', source))?.id, second.id);
  const { version: _, ...old } = source;
  await store.putModel({ ...testModel(`mdl_${ulid()}`), source: old });
  t.equal(await store.findModelCopy('default', old), null, 'copies can not be identified without a version');
});

t.test('a tokenizer that was copied without a model is found by its content, in its project', async (t) => {
  const store = await freshStore(t);
  const digest = `sha256:${'2'.repeat(64)}`;
  const source = { uri: 's3://zoo/words.json', version: `sha256:${'0'.repeat(64)}` };
  const [first, second] = [`mdl_${ulid()}`, `mdl_${ulid()}`].map((id) => ({
    ...testModel(id),
    model_type: null,
    digest,
    source,
  }));
  if (!first || !second) return;
  await store.putModel({ ...testModel(`mdl_${ulid()}`), digest });
  t.equal(await store.findTokenizerCopy('default', digest), null, 'a model is no copy of a tokenizer');
  await store.putModel(first);
  await store.putModel(second);
  t.equal((await store.findTokenizerCopy('default', digest))?.id, first.id);
  t.equal(await store.findModelCopy('default', source), null, 'nor is a tokenizer one of a folder');
  t.equal(await store.findTokenizerCopy('team-b', digest), null);
  await store.deleteModel(first.id);
  t.equal(await store.findTokenizerCopy('default', digest), null);
});

t.test('each project has its own list', async (t) => {
  const store = await freshStore(t);
  const ours = testDataset();
  await store.putDataset(ours);
  const theirs = { ...testDataset(), project: 'team-b' };
  await store.putDataset(theirs);
  t.same((await store.listDatasets()).data, [ours]);
  t.same((await store.listDatasets({ project: 'team-b' })).data, [theirs]);
  t.same((await store.listDatasets({ project: 'team-c' })).data, []);
  const spec = testSpec(theirs.id, { project: 'team-b', labels: { a: 'b' } });
  const { job } = await store.createJob({ id: `job_${ulid()}`, spec });
  t.equal(await store.projectOfJob(job.id), 'team-b');
  t.equal(await store.projectOfJob('job_none'), null);
  for (const filter of [{}, { state: ['queued'] }, { label: ['a=b'] }] as JobFilter[]) {
    t.same((await store.listJobs(filter)).data, []);
    t.same((await store.listJobs({ ...filter, project: 'team-b' })).data, [job]);
  }
  await store.requestCancel(job.id);
  t.same((await store.listJobs({ state: ['queued'], project: 'team-b' })).data, []);
  t.equal((await store.listJobs({ state: ['cancelled'], project: 'team-b' })).data.length, 1);
  t.equal(await store.deleteDataset(theirs.id), true);
  t.same((await store.listDatasets({ project: 'team-b' })).data, []);
  t.equal(await store.readyForCollection(), 'ready');
});

t.test('a dataset stays while a job needs it', async (t) => {
  const store = await freshStore(t);
  const job = await createTestJob(store);
  const id = job.spec.data.dataset ?? '';
  await t.rejects(store.deleteDataset(id), { code: 'dataset_in_use' });
  t.not(await store.getDataset(id), null);
  await store.requestCancel(job.id);
  t.equal(await store.deleteDataset(id), true, 'a job that has ended needs nothing');
});

t.test('a dataset stays while a job is evaluated on it', async (t) => {
  const store = await freshStore(t);
  const [training, evaluated] = [testDataset(), testDataset()];
  for (const dataset of [training, evaluated]) await store.putDataset(dataset);
  const spec = testSpec(training.id);
  const datasets = [training, evaluated].map(({ id }, i) => ({ name: `e-${i}`, dataset: id }));
  spec.train.evaluation = { every_steps: 10, datasets };
  const { job } = await store.createJob({ id: `job_${ulid()}`, spec });
  for (const { id } of [training, evaluated])
    await t.rejects(store.deleteDataset(id), {
      code: 'dataset_in_use',
      message: new RegExp(`${job.id} needs ${id}`),
    });
  await store.requestCancel(job.id);
  t.equal(await store.deleteDataset(evaluated.id), true);
  const repeated = store.createJob({ id: `job_${ulid()}`, spec });
  await t.rejects(repeated, { code: 'dataset_not_found', message: new RegExp(evaluated.id) });
  t.equal(await store.deleteDataset(training.id), true, 'a refused job needs nothing');
});

t.test('API keys', async (t) => {
  const store = await freshStore(t);
  const key = await store.putApiKey('secret-one', { name: 'ci', scopes: ['jobs:read', 'jobs:write'] });
  t.match(key, { id: /^key_/, name: 'ci', scopes: ['jobs:read', 'jobs:write'] });
  t.same(await store.findApiKey('secret-one'), key);
  t.equal(await store.findApiKey('secret-two'), null);
  t.equal(await store.findApiKey(''), null);
  const again = await store.putApiKey('secret-one', { name: 'ci 2', scopes: ['admin'] });
  t.same(again, { ...key, name: 'ci 2', scopes: ['admin'] }, 'the same secret stays the same key');
  t.same(await store.findApiKey('secret-one'), again);
  const other = await store.putApiKey('secret-two', { name: 'other', scopes: [] });
  t.same((await store.listApiKeys()).data.map(({ id }) => id).sort(), [key.id, other.id].sort());
  t.equal(await store.revokeApiKey(key.id), true);
  t.equal(await store.revokeApiKey(key.id), false);
  t.equal(await store.findApiKey('secret-one'), null);
  t.same((await store.listApiKeys()).data, [other]);
});

t.test('rotation: two secrets for a while, never three', async (t) => {
  const store = await freshStore(t);
  const key = await store.putApiKey('one', { name: 'ci', scopes: ['jobs:read'], project: 'team-b' });
  t.same((await store.listApiKeys({ project: 'team-b' })).data, [key]);
  t.same((await store.listApiKeys()).data, []);
  const rotated = await store.rotateApiKey(key.id, 'two', 60_000);
  t.match(rotated, { ...key, previous_secret_until: /^20/ });
  t.equal((await store.findApiKey('one'))?.id, key.id);
  t.equal((await store.findApiKey('two'))?.id, key.id);
  t.same((await store.listApiKeys({ project: 'team-b' })).data, [rotated]);

  await store.touchApiKey(key.id);
  t.match(await store.getApiKey(key.id), { last_used_at: /^20/ }, 'the older secret uses the key as well');
  t.match(await store.findApiKey('one'), { last_used_at: /^20/ });

  await store.rotateApiKey(key.id, 'three', 60_000);
  t.equal(await store.findApiKey('one'), null);
  t.not(await store.findApiKey('two'), null);
  t.match(await store.rotateApiKey(key.id, 'four', 0), { previous_secret_until: null });
  t.equal(await store.findApiKey('three'), null);
  await store.rotateApiKey(key.id, 'five', 60_000);

  t.equal(await store.revokeApiKey(key.id), true);
  for (const secret of ['two', 'four', 'five']) t.equal(await store.findApiKey(secret), null, secret);
  t.equal(await store.getApiKey(key.id), null);
  t.same((await store.listApiKeys({ project: 'team-b' })).data, []);
  await store.touchApiKey(key.id);
  t.equal(await store.findApiKey('five'), null, 'a use recorded after the revocation does not restore it');
  await t.rejects(store.rotateApiKey(key.id, 'six', 0), { code: 'api_key_not_found' });
  const builtin = await store.putApiKey('first', { name: 'first', scopes: ['admin'], builtin: true });
  await t.rejects(store.rotateApiKey(builtin.id, 'second', 0), { code: 'api_key_builtin' });
  t.not(await store.findApiKey('first'), null);
});

t.test('programs that start at the same time make one key of one secret', async (t) => {
  const store = await freshStore(t);
  const keys = await Promise.all(
    Array.from({ length: 8 }, () => store.putApiKey('the secret', { name: 'admin', scopes: ['admin'] })),
  );
  t.equal(new Set(keys.map(({ id }) => id)).size, 1);
  t.equal((await store.listApiKeys()).data.length, 1);
});

t.test('the check writes, and closing is idempotent', async (t) => {
  const store = await freshStore(t);
  await store.check();
  await store.close();
  await store.close();
  await t.rejects(store.check(), { code: 'job_store_unavailable' });
});

t.test('a model is kept while an adapter is over it', async (t) => {
  const store = await freshStore(t);
  const [base, adapter] = [testModel(`mdl_${ulid()}`), testModel(`mdl_${ulid()}`)];
  const withBase = { ...adapter, base: base.id };
  await t.rejects(store.putModel(withBase), { code: 'model_not_found' });
  t.equal(await store.getModel(adapter.id), null);
  await store.putModel(base);
  await store.putModel(withBase);
  await t.rejects(store.deleteModel(base.id), { code: 'model_in_use' });
  t.equal(await store.deleteModel(adapter.id), true);
  t.equal(await store.deleteModel(base.id), true);
  await store.beginRestore();
  await store.putModel(withBase);
  await store.putModel(base);
  await store.endRestore();
  await t.rejects(store.deleteModel(base.id), { code: 'model_in_use' }, 'restored in any order');
});
