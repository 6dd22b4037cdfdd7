import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import t from 'tap';
import type { Grade, Problem, SampleReply, SampleTask } from '../../../contracts/index.js';
import { EXACT } from '../../../job-document/testing/documents.js';
import { ADMIN_KEY, startTestStack } from '../../testing/stack.js';
import { servedCheckpoint } from '../../testing/training.js';

const asked: SampleTask[] = [];
/** The answer of the model. */
let answer: SampleReply = { ok: false, error: { code: 'workers_lost', message: 'no worker is left' } };

const stack = await startTestStack({
  samples: {
    sample: async (_, { request }) => {
      asked.push(request);
      return answer;
    },
  },
  webhookAllow: ['127.0.0.0/8'],
});
t.teardown(() => stack.close());
const post = (name: string, payload: object) =>
  stack.request({ method: 'POST', url: `/v1/graders/${name}`, payload });

t.test('a grade', async (t) => {
  const reply = await post('run', { grader: EXACT, output_text: '4', item: { answer: '4' } });
  t.equal(reply.statusCode, 200, reply.body);
  t.match(reply.json<Grade>(), { reward: 1, scores: { exact: 1 }, errors: [], tokens: {} });
});

t.test('wrong fields are named, with pointers into the body', async (t) => {
  const multi = {
    type: 'multi',
    name: 'm',
    graders: { a: { ...EXACT, operation: 'is' } },
    calculate_output: 'a',
  };
  const errorsOf = async (grader: object) => {
    const reply = await post('validate', { grader });
    t.equal(reply.statusCode, 422, reply.body);
    return reply.json<Problem>().errors.map(({ pointer, code }) => `${pointer} ${code}`);
  };
  t.same(await errorsOf(multi), ['/grader/graders/a/operation unknown_value']);
  t.same(await errorsOf({ ...EXACT, refrence: 'x', input: '{{x}}' }), ['/grader/refrence unknown_field']);
  t.same(await errorsOf({ ...EXACT, input: '{{x}}' }), ['/grader/input grader_invalid']);
  t.same(await errorsOf({ ...multi, graders: { 'a-b': EXACT } }), ['/grader/graders/a-b wrong_format']);
  t.same(await errorsOf({ type: 'multi', name: 'm', graders: { m: multi }, calculate_output: 'm' }), [
    '/grader/graders/m/type unknown_value',
  ]);
});

t.test('grades at once are bounded for each project', async (t) => {
  const source = 'import time\ndef grade(sample, item):\n  time.sleep(1)\n  return 1';
  const grader = { type: 'python', name: 'p', source };
  const replies = await Promise.all(
    Array.from({ length: 6 }, () => post('run', { grader, output_text: '' })),
  );
  const statuses = replies.map(({ statusCode }) => statusCode).sort();
  t.same(statuses, [200, 200, 200, 200, 429, 429]);
});

t.test('a checkpoint scores', async (t) => {
  const { checkpoint } = await servedCheckpoint(stack);
  const grader = {
    type: 'score_model',
    name: 's',
    model: checkpoint.id,
    input: [{ role: 'developer', content: 'Is {{sample.output_text}} right?' }],
  };
  const grade = async () => (await post('run', { grader, output_text: '4' })).json<Grade>();
  t.match(await grade(), {
    reward: 0,
    errors: [{ code: 'model_unavailable', message: /no worker is left/ }],
  });
  t.match(asked[0], {
    messages: [{ role: 'developer', content: 'Is 4 right?' }],
    temperature: 0,
    response_format: { type: 'json_schema', json_schema: { schema: { required: ['reasoning', 'result'] } } },
  });
  const choice = { index: 0, text: '{"reasoning": "", "result": 0.5}', finish_reason: 'stop' as const };
  const usage = { prompt_tokens: 5, cached_tokens: 0, completion_tokens: 7 };
  answer = { ok: true, sample: { prompt: 'p', choices: [{ ...choice, logprobs: [] }], usage } };
  t.match(await grade(), { reward: 0.5, errors: [], tokens: { [checkpoint.id]: 12 } });
  const unknown = await post('run', { grader: { ...grader, model: 'mdl_unknown' }, output_text: '' });
  t.match(unknown.json<Grade>(), { errors: [{ code: 'model_unavailable', message: /mdl_unknown/ }] });
});

t.test('a model that has scored leaves the connection silent for other parts', async (t) => {
  const choice = { index: 0, text: '{"reasoning": "", "result": 1}', finish_reason: 'stop' as const };
  const usage = { prompt_tokens: 1, cached_tokens: 0, completion_tokens: 1 };
  const reply: SampleReply = {
    ok: true,
    sample: { prompt: 'p', choices: [{ ...choice, logprobs: [] }], usage },
  };
  const hasty = await startTestStack({
    limits: { idle_connection_ms: 1_500 },
    samples: { sample: async () => reply },
  });
  t.teardown(() => hasty.close());
  const { checkpoint } = await servedCheckpoint(hasty);
  const source = 'import time\ndef grade(sample, item):\n  time.sleep(4)\n  return 1';
  const graders = {
    fast: { type: 'score_model', name: 's', model: checkpoint.id, input: [{ role: 'user', content: 'x' }] },
    slow: { type: 'python', name: 'p', source },
  };
  const grader = { type: 'multi', name: 'm', graders, calculate_output: 'fast + slow' };
  const answered = await fetch(`${await hasty.listen()}/v1/graders/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ grader, output_text: '' }),
  });
  t.match(await answered.json(), { reward: 2, errors: [] });
});

t.test('a webhook of the project scores, and no other one', async (t) => {
  let secret = '';
  let requests = 0;
  const server = createServer(async (request, reply) => {
    requests += 1;
    let body = '';
    for await (const piece of request) body += piece;
    new Webhook(secret).verify(body, request.headers as Record<string, string>);
    reply.end('{"score": 0.25}');
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const created = await stack.request({
    method: 'POST',
    url: '/v1/webhooks',
    payload: { url, jobs: 'named' },
  });
  const webhook = created.json<{ id: string; secret: string }>();
  secret = webhook.secret;
  const payload = { grader: { type: 'webhook', name: 'w', webhook: webhook.id }, output_text: '4' };
  t.match((await post('run', payload)).json<Grade>(), { reward: 0.25, errors: [] });
  const headers = await stack.headersIn('other');
  const foreign = await stack.app.inject({ method: 'POST', url: '/v1/graders/run', headers, payload });
  t.match(foreign.json<Grade>(), { reward: 0, errors: [{ code: 'webhook_unavailable' }] });
  t.equal(requests, 1);
});
