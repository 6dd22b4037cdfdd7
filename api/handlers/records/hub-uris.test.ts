/** Content of the Hugging Face Hub in requests. platform/hub tests the reading itself. */
import t, { type Test } from 'tap';
import type { Dataset, DryRun, Job, Model, Page, Problem } from '../../../contracts/index.js';
import { modelFolder } from '../../../formats/testing/models.js';
import { ContentSources } from '../../../platform/content-sources.js';
import { DatasetSources } from '../../../platform/dataset-sources.js';
import { HubSource } from '../../../platform/hub/source.js';
import { HubStandIn } from '../../../platform/testing/hub-stand-in.js';
import { smallSpec, startTestStack } from '../../testing/stack.js';

const LINES = Buffer.from('{"text": "to be or not to be, that is the question."}\n'.repeat(40));
const CHATS = 'hf://datasets/team/chats/data/train.jsonl';

async function start(t: Test) {
  const hub = await HubStandIn.start();
  const model = hub.commit('team/tiny', modelFolder({ shards: 2 }));
  const data = hub.commit('datasets/team/chats', new Map([['data/train.jsonl', LINES]]));
  const retry = { attempts: 2, first_delay_ms: 1, max_delay_ms: 2 };
  const stack = await startTestStack({
    sources: new ContentSources({
      buckets: new DatasetSources({ allowed: [], s3Endpoint: null }),
      hub: new HubSource({
        endpoint: hub.endpoint,
        token: (project) => stack.store.findHubToken(project),
        retry,
      }),
    }),
  });
  t.teardown(async () => {
    await stack.close();
    hub.close();
  });
  const post = (url: string, payload?: object) =>
    stack.request({ method: 'POST', url, ...(payload && { payload }) });
  const create = (changes: object, url = '/v1/jobs') => post(url, { ...smallSpec(''), ...changes });
  return { hub, stack, model, data, post, create };
}

const downloadsOf = (hub: HubStandIn) => hub.downloads.filter((name) => name.endsWith('.safetensors')).length;

t.test('a model and a dataset are registered at their commits', async (t) => {
  const { post, model: commit, data } = await start(t);
  const model = await post('/v1/models?name=mine&uri=hf://team/tiny');
  t.equal(model.statusCode, 201, model.body);
  t.match(model.json<Model>(), {
    has_tokenizer: true,
    source: { uri: `hf://team/tiny@${commit}`, version: /^sha256:/ },
  });
  const dataset = await post(`/v1/datasets?name=mine&format=jsonl&uri=${CHATS}`);
  t.equal(dataset.statusCode, 201, dataset.body);
  t.match(dataset.json<Dataset>(), {
    num_documents: 40,
    source: { uri: `hf://datasets/team/chats@${data}/data/train.jsonl`, etag: /^sha256:/ },
  });
});

t.test('a job copies what it names, and its document names the commits', async (t) => {
  const { hub, stack, create, model: commit, data } = await start(t);
  const named = { model: { init_from: 'hf://team/tiny' }, data: { uri: CHATS, format: 'jsonl' } };
  const plan = await create(named, '/v1/jobs?dry_run=true');
  t.equal(plan.statusCode, 200, plan.body);
  t.match(plan.json<DryRun>().spec, {
    model: { init_from: { uri: `hf://team/tiny@${commit}` } },
    data: { uri: `hf://datasets/team/chats@${data}/data/train.jsonl`, format: 'jsonl' },
  });
  t.equal(downloadsOf(hub), 0);

  const reply = await create(named);
  t.equal(reply.statusCode, 201, reply.body);
  const { spec } = reply.json<Job>();
  const [model] = (await stack.request({ url: '/v1/models' })).json<Page<Model>>().data;
  const [dataset] = (await stack.request({ url: '/v1/datasets' })).json<Page<Dataset>>().data;
  t.match(model, { name: 'tiny' });
  t.strictSame(spec.model.init_from, { model: model?.id });
  t.equal(spec.data.dataset, dataset?.id);
  t.strictSame(spec.sources, {
    [String(model?.id)]: `hf://team/tiny@${commit}`,
    [String(dataset?.id)]: `hf://datasets/team/chats@${data}/data/train.jsonl`,
  });
  t.equal(downloadsOf(hub), 2);

  hub.commit('team/tiny', new Map([...modelFolder({ shards: 2 }), ['README.md', Buffer.from('changed')]]));
  const again = (await create(named)).json<Job>();
  t.strictSame(again.spec.model.init_from, { model: model?.id });
  t.equal(again.spec.data.dataset, dataset?.id);
  t.equal(downloadsOf(hub), 2, 'a commit that changes no file of the model is not copied again');

  hub.commit('team/tiny', modelFolder({ shards: 2, dtype: 'F32' }));
  const other = (await create(named)).json<Job>();
  t.not(other.spec.data.tokenizer, model?.id);
  const pinned = (
    await create({ ...named, model: { init_from: { uri: `hf://team/tiny@${commit}` } } })
  ).json<Job>();
  t.strictSame(pinned.spec.sources, spec.sources, 'a commit names the same files for ever');
  t.equal(downloadsOf(hub), 4);
});

t.test('a tokenizer of the Hub', async (t) => {
  const { create, stack, model: commit } = await start(t);
  const { id } = await stack.upload('to be or not to be. '.repeat(100));
  const tokenizer = 'hf://team/tiny@main/tokenizer.json';
  const reply = await create({ data: { dataset: id, tokenizer } });
  t.equal(reply.statusCode, 201, reply.body);
  const { spec } = reply.json<Job>();
  t.strictSame(spec.sources, { [String(spec.data.tokenizer)]: `hf://team/tiny@${commit}/tokenizer.json` });
});

t.test('errors are those of the fields', async (t) => {
  const { hub, stack, create, post } = await start(t);
  const wrong = (reply: { json<T>(): T }) =>
    reply.json<Problem>().errors?.map(({ pointer, code }) => `${pointer} ${code}`);
  const refused = await create({
    model: { init_from: 'hf://team/nothing' },
    data: { uri: 'hf://datasets/team/chats/none.jsonl' },
  });
  t.strictSame(wrong(refused), [
    '/data/uri dataset_source_missing',
    '/model/init_from dataset_source_denied',
  ]);
  const odd = await create({ model: { init_from: 'hf://tiny' }, data: { uri: CHATS } });
  t.strictSame(wrong(odd), ['/model/init_from wrong_format']);
  hub.answer = ({ path }, response) => {
    if (path.includes('/resolve/')) response.writeHead(500).end();
    return path.includes('/resolve/');
  };
  const broken = await post(`/v1/datasets?name=mine&format=jsonl&uri=${CHATS}`);
  t.match(broken.json<Problem>(), { status: 503, code: 'hub_unavailable' });
  hub.answer = ({ server }, response) => {
    if (server === 'cdn') response.writeHead(200).end(Buffer.alloc(LINES.length, ' '));
    return server === 'cdn';
  };
  const damaged = await create({ data: { uri: CHATS, format: 'jsonl' } });
  t.strictSame(wrong(damaged), ['/data/uri dataset_source_corrupt']);
  t.strictSame((await stack.request({ url: '/v1/datasets' })).json<Page<Dataset>>().data, []);
});

t.test('a server without the Hub', async (t) => {
  const buckets = new DatasetSources({ allowed: [], s3Endpoint: null });
  const stack = await startTestStack({ sources: new ContentSources({ buckets, hub: null }) });
  t.teardown(() => stack.close());
  const reply = await stack.request({ method: 'POST', url: '/v1/models?name=x&uri=hf://team/tiny' });
  t.match(reply.json<Problem>(), {
    status: 403,
    code: 'dataset_uri_refused',
    detail: /ZEROFLEET_HUB_ENDPOINT/,
  });
});

t.test('the token of a project is used for this project only, and shown to nobody', async (t) => {
  const { hub, stack, post, create } = await start(t);
  const token = 'hf_0123456789abcdef';
  Object.assign(hub.repositories.get('team/tiny') ?? {}, { token });
  const url = '/v1/models?name=mine&uri=hf://team/tiny';
  const refused = await post(url);
  t.match(refused.json<Problem>(), { status: 422, code: 'dataset_source_denied', detail: /hub-token/ });
  const put = (headers: Record<string, string> = {}) =>
    stack.request({ method: 'PUT', url: '/v1/hub-token', payload: { token }, headers });
  const others = await stack.headersIn('others');
  t.match((await put(others)).json(), { set_at: /^2/ });
  t.equal((await post(url)).statusCode, 422, 'that of another project');
  t.match((await stack.request({ url: '/v1/hub-token' })).json(), { set_at: null });
  t.equal((await put(await stack.headersOf('models', 'datasets', 'jobs:write'))).statusCode, 403);
  await put();
  const reply = await post(url);
  t.equal(reply.statusCode, 201, reply.body);
  const data = { dataset: (await stack.upload('to be or not to be. '.repeat(100))).id };
  const job = await create({ model: { init_from: 'hf://team/tiny' }, data });
  t.equal(job.statusCode, 201, job.body);
  const events = await stack.request({ url: `/v1/jobs/${job.json<Job>().id}/events` });
  const audit = await stack.request({ url: '/v1/audit-log' });
  for (const { body } of [reply, job, events, audit, await stack.request({ url: '/v1/hub-token' })])
    t.notMatch(body, token);
  for await (const { key } of stack.objects.list(''))
    t.notMatch((await stack.objects.get(key)).toString('latin1'), token, key);
  t.equal((await stack.request({ method: 'DELETE', url: '/v1/hub-token' })).statusCode, 204);
  t.equal((await post(url)).statusCode, 422);
});
