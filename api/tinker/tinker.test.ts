/** The translated API. */
import t from 'tap';
import { callKey } from '../../formats/checkpoint/layout.js';
import { ADMIN_KEY } from '../testing/stack.js';
import { startTinker } from '../testing/tinker.js';

t.test("Tinker's API", async (t) => {
  const { stack, send, post, wait, create, pass, readCall, createSampler } = await startTinker(t);

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
      request: 'training-1',
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
      loss: { type: 'ppo', clip_low: 0.2, clip_high: 0.3, beta: 0 },
      request: 'training-2',
      rows: [{ tokens: [1, 2, 3], targets: [2, 3, 4], log_probs: [-1, -1, -1], advantages: [1, 0, -1] }],
    });
  });

  t.test('a training run has the metadata of its model', async (t) => {
    const id = await create(7, { user_metadata: { renderer_name: 'role_colon' } });
    const url = `/tinker/api/v1/training_runs/${id}?access_scope=owned`;
    const reply = await stack.app.inject({ url, headers: { 'x-api-key': `tml-${ADMIN_KEY}` } });
    t.match(reply.json(), {
      training_run_id: id,
      base_model: 'llama-tiny',
      is_lora: true,
      lora_rank: 4,
      user_metadata: { renderer_name: 'role_colon' },
    });
    t.notOk('tinker/base_model' in reply.json().user_metadata);
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
      await messageOf(send('load_weights', { model_id: id, seq_id: 1, path: 'a', optimizer: true })),
      /no path/,
    );
    t.match(await messageOf(send('publish', {})), /POST \/tinker\/api\/v1\/publish is not supported/);
    t.equal((await pass('job_01J00000000000000000000000', 'ppo')).statusCode, 404);
    t.equal(await stack.store.getCalls(id), null, 'nothing is stored');
  });

  t.test('samples are calls between those of the training, until the weights change', async (t) => {
    const id = await create(4);
    const samplingSessionId = await createSampler(id);
    const prompt = { chunks: [{ type: 'encoded_text', tokens: [1, 2] }] };
    const samplingParams = { max_tokens: 4, temperature: 0.5, top_k: -1, top_p: 1, stop: [9] };
    const body = {
      sampling_session_id: samplingSessionId,
      seq_id: 0,
      num_samples: 2,
      prompt,
      sampling_params: samplingParams,
    };
    const sampled = await post('asample', { ...body, prompt_logprobs: true });
    t.match(await readCall(id, 1), { type: 'forward', rows: [{ tokens: [1], targets: [2] }] });
    t.match(await readCall(id, 2), { type: 'sample', prompts: [[1, 2]], n: 2, top_k: 0, stop_tokens: [9] });
    const answer = await wait(sampled.request_id);
    t.equal(answer.headers['content-type'], 'application/x-protobuf');
    t.ok(answer.rawPayload.includes(Buffer.from(Int32Array.of(7, 8).buffer)), 'tokens');
    const stopAt = (stop: unknown, seqId: number) =>
      post('asample', { ...body, seq_id: seqId, sampling_params: { ...samplingParams, stop } });
    t.match(await stopAt(['a', 9], 1), { error: { param: 'sampling_params.stop' } });
    t.match(await stopAt([''], 1), { error: { param: 'sampling_params.stop.0' } });
    await stopAt('a', 1);
    t.match(await readCall(id, 3), { type: 'sample', stop_tokens: [], stop_texts: ['a'] });

    const update = { model_id: id, adam_params: { learning_rate: 0.5 } };
    const step = await post('optim_step', { ...update, seq_id: 2 });
    t.match(await readCall(id, 4), { type: 'optim_step', lr: 0.5, betas: [0.9, 0.95], eps: 1e-12 });
    t.match((await wait(step.request_id)).json(), { metrics: { grad_norm: 2, skipped: 0 } });
    const staleSampler = await createSampler(id, 3);
    await post('optim_step', { ...update, seq_id: 4 });
    const stale = await send('asample', { ...body, sampling_session_id: staleSampler });
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
