/** Samples of weights that their session no longer has. */
import t from 'tap';
import { startTinker } from '../testing/tinker.js';

t.test('samples of saved weights', async (t) => {
  const { stack, send, post, create, save, sampleOf, createSampler } = await startTinker(t);
  const model = await create();
  await post('optim_step', { model_id: model, seq_id: 0, adam_params: {} });
  const path = await save(model);
  const created = { session_id: 'a', sampling_session_seq_id: 0, model_path: path };
  const { sampling_session_id: sampler } = await post('create_sampling_session', created);
  await post('optim_step', { model_id: model, seq_id: 2, adam_params: {} });
  const sample = async (seqId: number): Promise<string> => {
    const reply = await send('asample', sampleOf(sampler, seqId));
    t.equal(reply.statusCode, 200, reply.body);
    return reply.json().request_id.split('.')[0];
  };
  const audited = async () =>
    (await stack.store.listAudit('default')).data.filter(({ operation }) => operation === 'createJob');

  const long = sampleOf(sampler, 9);
  const refused = await send('asample', {
    ...long,
    sampling_params: { ...long.sampling_params, max_tokens: 9999 },
  });
  t.equal(refused.statusCode, 400, refused.body);
  t.equal((await audited()).length, 1, 'a sample that is refused creates no fork');

  const fork = await sample(0);
  t.not(fork, model, 'a fork samples');
  t.equal(await sample(1), fork, 'again');
  t.match(await audited(), [
    { resource: fork, outcome: 'succeeded' },
    { resource: model, outcome: 'succeeded' },
  ]);
  t.equal((await audited()).length, 2);

  await stack.request({ method: 'POST', url: `/v1/jobs/${fork}/cancel` });
  const next = await sample(2);
  t.not(next, fork, 'a fork that has ended is followed by another');
  t.equal(await sample(3), next);
  await stack.request({ method: 'POST', url: `/v1/jobs/${next}/cancel` });
  await stack.request({ method: 'DELETE', url: `/v1/jobs/${next}` });
  t.not(await sample(4), next, 'also one that was deleted');

  const both = await send('create_sampling_session', { ...created, base_model: 'gpt2' });
  t.match([both.statusCode, both.json()], [400, { error: { param: 'base_model' } }]);

  const forged = (await createSampler(model)).replace(/\.\d+\./, '.99.');
  t.equal((await send('asample', sampleOf(forged, 5))).statusCode, 404);
});

t.test('samples of the weights that a model began with', async (t) => {
  const { stack, send, create, sampleOf, createSampler, readCall, post } = await startTinker(t);
  const model = await create(0, { user_metadata: { team: 'a' } });
  const sampler = await createSampler(model);
  const jobOf = async (seqId: number): Promise<string> => {
    const reply = await send('asample', sampleOf(sampler, seqId));
    t.equal(reply.statusCode, 200, reply.body);
    return reply.json().request_id.split('.')[0];
  };
  t.equal(await jobOf(0), model);
  await post('optim_step', { model_id: model, seq_id: 2, adam_params: {} });
  const other = await jobOf(1);
  t.not(other, model, 'a session with the same document samples');
  t.equal(await jobOf(2), other);
  t.match(await readCall(other, 1), { type: 'sample' });
  const documentOf = async (id: string) =>
    (await stack.request({ url: `/v1/jobs/${id}/document` })).json().given;
  const { labels, ...document } = await documentOf(model);
  t.strictSame(labels, { team: 'a', 'tinker/base_model': 'llama-tiny' });
  t.strictSame(await documentOf(other), { ...document, labels: { 'tinker/base_model': 'llama-tiny' } });
});

t.test('samples are sent together', async (t) => {
  const { post, create, createSampler, sampleOf } = await startTinker(t);
  const { sample_max_concurrent_requests: count } = await post('client/config', {});
  const sampler = await createSampler(await create());
  const prompts = Array.from({ length: count }, (_, i) => ({
    ...sampleOf(sampler, i),
    prompt_logprobs: true,
  }));
  const replies = await Promise.all(prompts.map((body) => post('asample', body)));
  for (const { request_id, error } of replies) t.match(request_id, /sample/, JSON.stringify(error));
});
