/** Who may ask which model, through the official client and by requests. */
import OpenAI from 'openai';
import t from 'tap';
import type { SampleReply, Scope } from '../../../contracts/index.js';
import { modelFolder, tarOf } from '../../../formats/testing/models.js';
import { upload } from '../../testing/model-uploads.js';
import { ADMIN_KEY, startTestStack } from '../../testing/stack.js';
import { servedCheckpoint } from '../../testing/training.js';

const REPLY: SampleReply = {
  ok: true,
  sample: {
    prompt: 'p',
    choices: [{ index: 0, text: 'yes', finish_reason: 'stop', logprobs: [] }],
    usage: { prompt_tokens: 5, cached_tokens: 3, completion_tokens: 2 },
  },
};

const stack = await startTestStack({ samples: { sample: async () => REPLY } });
t.teardown(() => stack.close());
const client = new OpenAI({ baseURL: `${await stack.listen()}/openai/v1`, apiKey: ADMIN_KEY, maxRetries: 0 });
const { job, checkpoint } = await servedCheckpoint(stack);
const model = `ft:tiny:default::${checkpoint.id}`;
const messages = [{ role: 'user' as const, content: 'is 4 even' }];

t.test('a key needs the scopes of what answers', async (t) => {
  const files = modelFolder().set('chat_template.jinja', Buffer.from('{{ messages }}'));
  await upload(stack, await tarOf(files), 'name=org/tiny');
  const ask = async (name: string, ...scopes: Scope[]) => {
    const { authorization } = await stack.headersOf(...scopes);
    const headers = { authorization };
    const url = '/openai/v1/chat/completions';
    const reply = await stack.app.inject({
      method: 'POST',
      url,
      headers,
      payload: { model: name, messages },
    });
    const { error } = reply.json<{ error?: { code: string } }>();
    return error?.code ?? reply.statusCode;
  };
  t.equal(await ask(model, 'jobs:write', 'models'), 'insufficient_scope');
  t.equal(await ask(model, 'jobs:write', 'jobs:read'), 200);
  t.equal(await ask('org/tiny', 'jobs:write', 'jobs:read'), 'insufficient_scope');
  t.equal(await ask('org/tiny', 'jobs:write', 'models'), 200);
  const { text } = await stack.app.services.metrics.scrape([]);
  t.match(text, /operation="sampleModel",status="200"/, 'it is the operation of the model');
  const { authorization } = await stack.headersIn('elsewhere');
  for (const name of [model, `ft:tiny:default::${job.id}`, 'org/tiny']) {
    const other = new OpenAI({ baseURL: client.baseURL, apiKey: authorization.slice('Bearer '.length) });
    await t.rejects(other.chat.completions.create({ model: name, messages }), {
      status: 404,
      code: /_not_found$/,
    });
  }
});

t.test('a share asks no model', async (t) => {
  const share = await stack.request({ method: 'POST', url: `/v1/jobs/${job.id}/shares`, payload: {} });
  const { token } = share.json<{ token: string }>();
  const headers = { authorization: `Bearer ${token}` };
  const payload = { model, messages };
  const options = { method: 'POST', url: '/openai/v1/chat/completions', headers, payload } as const;
  t.match((await stack.app.inject(options)).json(), { error: { code: 'outside_share' } });
});

t.test('an answer counts as one request', async (t) => {
  const { authorization } = await stack.headersOf('jobs:write', 'jobs:read');
  const payload = { model, messages };
  const options = {
    method: 'POST',
    url: '/openai/v1/chat/completions',
    headers: { authorization },
    payload,
  } as const;
  const left = async () => Number((await stack.app.inject(options)).headers['ratelimit-remaining']);
  t.equal((await left()) - (await left()), 1);
});

t.test('a job has a model when it has trained one', async (t) => {
  const name = `ft:tiny:default::${job.id}`;
  const wanted = { status: 404, code: 'model_not_found', param: 'model' };
  await t.rejects(client.models.retrieve(name), wanted);
  await t.rejects(client.models.delete(name), wanted);
  await t.rejects(client.chat.completions.create({ model: name, messages }), wanted);
  t.match(await client.models.retrieve(model), { id: /^ft:/, object: 'model' });
});
