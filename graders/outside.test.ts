/** Graders that ask a URL: webhooks and models of servers. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import t, { type Test } from 'tap';
import type { ScoreModelGrader, WebhookGrader } from '../contracts/index.js';
import { AddressPolicy } from '../platform/outgoing/addresses.js';
import { newSecret } from '../platform/outgoing/signature.js';
import { askServer, type ModelServers } from './model-servers.js';
import { testGraders } from './testing/graders.js';

const graded = { item: { question: '2+2' }, sample: { output_text: '4' } };

interface Received {
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}
type Reply = { status?: number; body?: string; hang?: true };

/** A server with one reply for each request; the last one is repeated. */
async function replying(t: Test, ...replies: Reply[]): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = [];
  const server: Server = createServer((request, answer) => {
    let body = '';
    request.setEncoding('utf8').on('data', (piece) => {
      body += piece;
    });
    request.on('end', () => {
      const { status = 200, body: text = '', hang } = replies[received.length] ?? replies.at(-1) ?? {};
      received.push({ url: request.url ?? '', headers: request.headers, body });
      if (!hang) answer.writeHead(status).end(text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close().closeAllConnections());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}

const webhook: WebhookGrader = { type: 'webhook', name: 'w', webhook: `wh_${'0'.repeat(26)}` };

t.test('a webhook gets a signed request, and is asked again after a failure', async (t) => {
  const { url, received } = await replying(t, { status: 503 }, { body: '{"score": 0.5, "more": 1}' });
  const secret = newSecret();
  const graders = testGraders(t, {
    findWebhook: async (id) => (id === webhook.webhook ? { url: `${url}/grade`, secrets: [secret] } : null),
  });
  t.match(await graders.grade(webhook, graded), { reward: 0.5, errors: [], scores: { w: 0.5 } });
  t.equal(received.length, 2);
  t.equal(received[0]?.headers['webhook-id'], received[1]?.headers['webhook-id']);
  for (const { headers, body } of received) {
    const message = new Webhook(secret).verify(body, headers as Record<string, string>);
    t.match(message, { type: 'grader.asked', data: { grader: 'w', ...graded } });
  }
});

t.test('failures of webhooks', async (t) => {
  const codeOf = async (replies: Reply[], policy = new AddressPolicy(['127.0.0.0/8'])) => {
    const { url, received } = await replying(t, ...replies);
    const graders = testGraders(t, {
      findWebhook: async () => ({ url, secrets: [newSecret()] }),
      asking: { policy, timeout_ms: 300 },
    });
    const { reward, errors } = await graders.grade(webhook, graded);
    t.equal(reward, 0);
    return `${errors[0]?.code} after ${received.length}`;
  };
  t.equal(await codeOf([{ status: 500 }]), 'webhook_refused after 3');
  t.equal(await codeOf([{ status: 404 }]), 'webhook_refused after 1');
  t.equal(await codeOf([{ status: 302 }]), 'webhook_refused after 1');
  t.equal(await codeOf([{ hang: true }]), 'webhook_unavailable after 3');
  t.equal(await codeOf([{}], new AddressPolicy([])), 'webhook_unavailable after 0');
  t.equal(await codeOf([{ body: '"x' }]), 'webhook_answer_invalid after 1');
  t.equal(await codeOf([{ body: '{"score": "1"}' }]), 'webhook_answer_invalid after 1');
  t.equal(await codeOf([{ body: '{"score": 1e999}' }]), 'webhook_answer_invalid after 1');
  t.equal(
    await codeOf([{ body: `{"score": 1, "x": "${'x'.repeat(70_000)}"}` }]),
    'webhook_unavailable after 1',
  );
  const graders = testGraders(t);
  t.match(await graders.grade(webhook, graded), {
    errors: [{ code: 'webhook_unavailable', message: /no enabled/ }],
  });
});

const model: ScoreModelGrader = {
  type: 'score_model',
  name: 's',
  model: 'judge',
  server: 'main',
  input: [{ role: 'user', content: 'Is {{sample.output_text}} = {{item.question}}?' }],
  range: [0, 10],
};

function judge(t: Test, servers: ModelServers) {
  const asking = {
    policy: new AddressPolicy(['127.0.0.0/8']),
    resolve: async () => [],
    timeout_ms: 5000,
    retry_delays_ms: [10],
  };
  return testGraders(t, {
    askModel: (question, signal) =>
      askServer(question.server ?? '', question, { ...asking, servers, project: 'default' }, signal),
  });
}

const completion = (content: string | null, refusal?: string) => ({
  body: JSON.stringify({ choices: [{ message: { content, refusal } }], usage: { total_tokens: 30 } }),
});

t.test('a model of a server scores', async (t) => {
  const { url, received } = await replying(
    t,
    { status: 429 },
    completion('{"reasoning": "yes", "result": 9}'),
  );
  const graders = judge(t, new Map([['main', { url: `${url}/v1/`, token: 'key' }]]));
  t.match(await graders.grade(model, graded), { reward: 9, errors: [], tokens: { judge: 30 } });
  t.equal(received.length, 2);
  const [, { headers, body, url: path }] = received as [Received, Received];
  t.equal(path, '/v1/chat/completions');
  t.equal(headers.authorization, 'Bearer key');
  t.match(JSON.parse(body), {
    model: 'judge',
    messages: [{ role: 'user', content: 'Is 4 = 2+2?' }],
    temperature: 0,
    response_format: { type: 'json_schema', json_schema: { schema: { required: ['reasoning', 'result'] } } },
  });
  const { tokens } = await graders.grade({ ...model, model: 'constructor' }, graded);
  t.same(tokens, { constructor: 30 });
});

t.test('failures of models', async (t) => {
  const codeOf = async (reply: Reply) => {
    const { url } = await replying(t, reply);
    const graders = judge(t, new Map([['main', { url }]]));
    return (await graders.grade(model, graded)).errors[0]?.code;
  };
  t.equal(await codeOf(completion('nine')), 'model_answer_invalid');
  t.equal(await codeOf(completion('{"result": 11}')), 'model_answer_invalid');
  t.equal(await codeOf(completion('{"result": null}')), 'model_answer_invalid');
  t.equal(await codeOf(completion(null, 'I cannot')), 'model_refused');
  t.equal(await codeOf({ body: '{}' }), 'model_unavailable');
  t.equal(await codeOf({ status: 401 }), 'model_unavailable');
  const foreign = judge(t, new Map([['main', { url: 'http://127.0.0.1:1', projects: ['other'] }]]));
  t.match(await foreign.grade(model, graded), {
    errors: [{ code: 'model_unavailable', message: /no server main/ }],
  });
});
