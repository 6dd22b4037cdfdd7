/** The translated API with bodies of the official client, and the worker's part of a session played by the test. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { CallResult, StoredCall } from '../../contracts/index.js';
import { callKey } from '../../formats/checkpoint/layout.js';
import { projectRoot } from '../../platform/process/root.js';
import { answerSessions } from '../testing/sessions.js';
import { ADMIN_KEY, startTestStack } from '../testing/stack.js';

const DIGEST = '0'.repeat(32);
/**
 * Bodies of the official client (record_messages.py): what follows `model_id`, with one datum of the tokens [1, 2, 3].
 */
const MESSAGES: Record<string, string> = JSON.parse(
  readFileSync(join(projectRoot(), 'test', 'tinker', 'messages.json'), 'utf8'),
);

function resultOf(call: StoredCall): CallResult {
  if (call.type === 'sample')
    return { samples: [{ tokens: [7, 8], log_probs: [-0.5, null], finish: 'length' }] };
  if (call.type === 'optim_step')
    return { step: 1, grad_norm: 2, lr: call.lr, finite: true, state_digest: DIGEST };
  if ('rows' in call)
    return {
      loss: 1.5,
      num_targets: 2,
      log_probs: call.rows.map(({ targets }) => targets.map((id) => -id)),
      metrics: {},
    };
  return { error: { code: 'gradients_pending', message: 'gradients wait for an update' } };
}

t.test("Tinker's API", async (t) => {
  const stack = await startTestStack();
  const ended = new AbortController();
  const answering = answerSessions(stack, resultOf, ended.signal);
  t.teardown(async () => {
    ended.abort();
    await answering;
    await stack.close();
  });
  const headers = { 'x-api-key': `tml-${ADMIN_KEY}` };
  const send = (path: string, payload: object | Buffer, type = 'application/json') =>
    stack.app.inject({
      method: 'POST',
      url: `/tinker/api/v1/${path}`,
      headers: { ...headers, 'content-type': type },
      payload: Buffer.isBuffer(payload) ? payload : JSON.stringify(payload),
    });
  const post = async (path: string, payload: object) => (await send(path, payload)).json();
  const wait = (requestId: string) => send('retrieve_future', { request_id: requestId });
  const create = async (modelSeqId = 0) => {
    const loraConfig = { rank: 4, seed: null, train_unembed: true, train_mlp: true, train_attn: false };
    const body = {
      session_id: 'a',
      model_seq_id: modelSeqId,
      base_model: 'llama-tiny',
      lora_config: loraConfig,
      type: 'create_model',
    };
    const { request_id } = await post('create_model', body);
    return (await wait(request_id)).json<{ model_id: string }>().model_id;
  };
  const pass = (model: string, message: string) => {
    const id = Buffer.from(model);
    const body = Buffer.concat([
      Buffer.from([10, id.length]),
      id,
      Buffer.from(MESSAGES[message] ?? '', 'base64'),
    ]);
    return send('forward_backward', body, 'application/x-protobuf');
  };
  const readCall = async (job: string, number: number) =>
    (await stack.request({ method: 'GET', url: `/v1/jobs/${job}/calls/${number}` })).json<StoredCall>();

  t.test('a model is a session with an adapter, and a repeated request finds it', async (t) => {
    const id = await create();
    t.equal(await create(), id);
    t.not(await create(1), id);
    const job = (await stack.request({ method: 'GET', url: `/v1/jobs/${id}` })).json();
    const targetModules = ['gate_proj', 'up_proj', 'down_proj'];
    t.match(job.spec.train, { session: {}, adapter: { rank: 4, alpha: 32, target_modules: targetModules } });
    t.match(await post('get_info', { model_id: id }), {
      model_name: 'llama-tiny',
      is_lora: true,
      lora_rank: 4,
    });
  });

  t.test('a pass in protobuf becomes a call', async (t) => {
    const id = await create(2);
    const first = (await pass(id, 'cross_entropy')).json();
    t.same(await readCall(id, 1), {
      type: 'forward_backward',
      loss: { type: 'cross_entropy' },
      rows: [{ tokens: [1, 2, 3], targets: [2, 3, 4], weights: [0, 0.5, 1] }],
    });
    const result = await wait(first.request_id);
    t.equal(result.headers['content-type'], 'application/x-protobuf');
    t.ok(result.rawPayload.includes(Buffer.from(Float32Array.of(-2, -3, -4).buffer)), 'log-probabilities');
    t.ok(result.rawPayload.includes('loss:sum'));
    t.same((await pass(id, 'cross_entropy')).json(), first, 'a repeated request is the same call');
    await pass(id, 'ppo');
    t.same(await readCall(id, 2), {
      type: 'forward_backward',
      loss: { type: 'ppo', clip_low: 0.2, clip_high: 0.3 },
      rows: [{ tokens: [1, 2, 3], targets: [2, 3, 4], log_probs: [-1, -1, -1], advantages: [1, 0, -1] }],
    });
  });

  t.test('a call that was stored but not counted holds nothing up', async (t) => {
    const id = await create(6);
    await stack.objects.put(callKey(id, 1), Buffer.from('{"type":"save_state"}'));
    await pass(id, 'cross_entropy');
    t.match(await readCall(id, 2), { type: 'forward_backward' });
  });

  t.test('what is not supported is refused by name', async (t) => {
    const id = await create(3);
    const messageOf = async (reply: ReturnType<typeof send>) => (await reply).json().error?.message;
    t.match(await messageOf(pass(id, 'dro')), /dro is not supported/);
    t.match(await messageOf(pass(id, 'image')), /only chunks of text/);
    t.match(await messageOf(pass(id, 'sparse')), /dense/);
    t.match(
      await messageOf(send('forward_backward', Buffer.from([10, 200]), 'application/x-protobuf')),
      /protobuf/,
    );
    t.match(await messageOf(send('forward_backward', {})), /x-protobuf/);
    t.match(
      await messageOf(send('save_weights', { model_id: id, seq_id: 1, ttl_seconds: 5 })),
      /ttl_seconds/,
    );
    t.match(
      await messageOf(send('load_weights', { model_id: id, seq_id: 1, path: 'a', optimizer: true })),
      /no path/,
    );
    t.match(await messageOf(send('publish', {})), /POST \/tinker\/api\/v1\/publish is not supported/);
    t.equal((await pass('job_01J00000000000000000000000', 'ppo')).statusCode, 404);
    t.equal(await stack.store.getCalls(id), null, 'nothing is stored');
  });

  t.test('samples are calls between those of the training, until the weights change', async (t) => {
    const id = await create(4);
    const save = { model_id: id, seq_id: 1, sampling_session_seq_id: 0 };
    const { request_id } = await post('save_weights_for_sampler', save);
    const { sampling_session_id } = (await wait(request_id)).json();
    const prompt = { chunks: [{ type: 'encoded_text', tokens: [1, 2] }] };
    const samplingParams = { max_tokens: 4, temperature: 0.5, top_k: -1, top_p: 1, stop: [9] };
    const body = { sampling_session_id, seq_id: 0, num_samples: 2, prompt, sampling_params: samplingParams };
    const sampled = await post('asample', { ...body, prompt_logprobs: true });
    t.match(await readCall(id, 1), { type: 'forward', rows: [{ tokens: [1], targets: [2] }] });
    t.match(await readCall(id, 2), { type: 'sample', prompts: [[1, 2]], n: 2, top_k: 0, stop_tokens: [9] });
    const answer = await wait(sampled.request_id);
    t.equal(answer.headers['content-type'], 'application/x-protobuf');
    t.ok(answer.rawPayload.includes(Buffer.from(Int32Array.of(7, 8).buffer)), 'tokens');
    const texts = { ...body, sampling_params: { ...samplingParams, stop: ['a'] } };
    t.match(await post('asample', texts), { error: { message: /stop has texts/ } });

    const step = await post('optim_step', { model_id: id, seq_id: 2, adam_params: { learning_rate: 0.5 } });
    t.match(await readCall(id, 3), { type: 'optim_step', lr: 0.5, betas: [0.9, 0.95], eps: 1e-12 });
    t.match((await wait(step.request_id)).json(), { metrics: { grad_norm: 2, skipped: 0 } });
    const stale = await send('asample', { ...body, seq_id: 1 });
    t.match([stale.statusCode, stale.json()], [400, { error: { code: 'weights_changed' } }]);
  });

  t.test('the error of a call is that of the request', async (t) => {
    const id = await create(5);
    const { request_id } = await post('save_weights', { model_id: id, seq_id: 1, path: 'a' });
    t.match((await wait(request_id)).json(), { error: /^gradients_pending/, category: 'user' });
  });

  t.test('a key is required', async (t) => {
    const url = '/tinker/api/v1/create_session';
    t.equal((await stack.app.inject({ method: 'POST', url, payload: {} })).statusCode, 401);
  });
});
