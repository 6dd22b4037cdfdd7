import t from 'tap';
import type { Estimate, Job, JobSpec, Model, Problem } from '../../../contracts/index.js';
import { modelFolder, tarOf } from '../../../formats/testing/models.js';
import { smallSpec, startTestStack } from '../../testing/stack.js';
import { claimAndTrain } from '../../testing/training.js';

t.test('a job that starts from a checkpoint', async (t) => {
  let deleted: string | null = null;
  const stack = await startTestStack({
    wrap: ({ store }) => ({
      store: { ...store, getModel: async (id) => (id === deleted ? null : store.getModel(id)) },
    }),
  });
  t.teardown(() => stack.close());
  const { store, objects } = stack;
  const first = await stack.createJob();
  const execution = await claimAndTrain(store, first.id, { steps: 3 });
  const [checkpoint] = (await store.listCheckpoints(first.id)).data;
  if (checkpoint === undefined) throw new Error('no checkpoint');
  const manifest = `${checkpoint.prefix}/MANIFEST.json`;
  await objects.put(manifest, Buffer.from('{}'));

  const create = (initFrom: object | string, changes: Partial<JobSpec> = {}) => {
    const spec = smallSpec(first.spec.data.dataset ?? '');
    const payload = { ...spec, model: { ...spec.model, init_from: initFrom }, ...changes };
    return stack.request({ method: 'POST', url: '/v1/jobs', payload });
  };
  const errors = async (initFrom: object | string, changes?: Partial<JobSpec>) =>
    (await create(initFrom, changes))
      .json<Problem>()
      .errors.map(({ pointer, code }) => `${pointer} ${code}`)
      .join();

  t.test('its location is part of the resolved document', async (t) => {
    const reply = await create({ checkpoint: checkpoint.id, restore: 'weights_16bit' });
    t.equal(reply.statusCode, 201);
    t.same(reply.json<Job>().spec.model.init_from, {
      checkpoint: checkpoint.id,
      job: first.id,
      prefix: checkpoint.prefix,
      restore: 'weights_16bit',
    });
  });

  t.test('refused: an unknown checkpoint', async (t) => {
    const initFrom = { checkpoint: `ckpt_${'0'.repeat(26)}` };
    t.equal(await errors(initFrom), '/model/init_from/checkpoint checkpoint_not_found');
    t.equal(await errors({ checkpoint: 'newest' }), '/model/init_from/checkpoint wrong_format');
    t.equal(await errors({}), '/model/init_from exactly_one_of');
  });

  t.test('refused: another model, or another optimizer', async (t) => {
    const { init_from, model } = {
      init_from: { checkpoint: checkpoint.id },
      model: { preset: 'llama-small' },
    };
    t.equal(
      await errors({}, { model: { ...model, init_from } as JobSpec['model'] }),
      '/model/init_from/checkpoint checkpoint_model_mismatch',
    );
    t.match(
      await errors({ ...init_from, restore: 'full' }, { train: { steps: 1, optimizer: { type: 'sgd' } } }),
      '/model/init_from/restore checkpoint_optimizer_mismatch',
    );
  });

  t.test('a string is the checkpoint id', async (t) => {
    const begun = (await create(checkpoint.id)).json<Job>().spec.model.init_from;
    t.match(begun, { checkpoint: checkpoint.id, restore: 'weights' });
    t.strictSame(begun, (await create({ checkpoint: checkpoint.id })).json<Job>().spec.model.init_from);
    t.equal(await errors(`ckpt_${'0'.repeat(26)}`), '/model/init_from checkpoint_not_found');
    t.equal(await errors(`mdl_${'0'.repeat(26)}`), '/model/init_from model_not_found');
    t.equal(await errors('s3://nowhere/at/all'), '/model/init_from dataset_uri_refused');
    t.equal(await errors('newest'), '/model/init_from wrong_format');
  });

  t.test('the tokenizer is that of its job', async (t) => {
    t.equal((await create({ checkpoint: checkpoint.id })).json<Job>().spec.data.tokenizer, 'bytes');
  });

  t.test('the tokenizer of its job may be deleted', async (t) => {
    const headers = { 'content-type': 'application/x-tar' };
    const payload = await tarOf(modelFolder());
    const uploaded = await stack.request({ method: 'POST', url: '/v1/models?name=x', headers, payload });
    const tokenizer = uploaded.json<Model>().id;
    const { dataset } = first.spec.data;
    const made = await create({ checkpoint: checkpoint.id }, { data: { dataset, tokenizer } });
    const job = made.json<Job>();
    await claimAndTrain(store, job.id, { steps: 3 });
    const [mine] = (await store.listCheckpoints(job.id)).data;
    await objects.put(`${mine?.prefix}/MANIFEST.json`, Buffer.from('{}'));
    const again = async () => create({ checkpoint: mine?.id });
    t.equal((await again()).json<Job>().spec.data.tokenizer, tokenizer);
    deleted = tokenizer;
    const [error] = (await again()).json<Problem>().errors;
    t.match(error, {
      pointer: '/data/tokenizer',
      code: 'model_not_found',
      message: /the tokenizer of the checkpoint's job/,
    });
  });

  t.test('refused: a removed checkpoint', async (t) => {
    const initFrom = { checkpoint: checkpoint.id };
    await objects.delete([manifest]);
    t.equal(await errors(initFrom), '/model/init_from/checkpoint checkpoint_removed');
    await objects.put(manifest, Buffer.from('{}'));
    const made = await create(initFrom);
    t.equal(made.statusCode, 201);
    await t.rejects(store.removeCheckpoint(first.id, execution, checkpoint.id), { code: 'checkpoint_held' });
    // The jobs that start from it, here and in the tests before, need it no longer.
    for (const { id } of (await store.listJobs({ state: ['queued'] })).data) await store.requestCancel(id);
    await store.removeCheckpoint(first.id, execution, checkpoint.id);
    t.equal(await errors(initFrom), '/model/init_from/checkpoint checkpoint_removed');
  });
});

t.test('a job that starts from an uploaded model', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { id: dataset } = await stack.upload('to be or not to be, that is the question. '.repeat(20));
  const upload = async () => {
    const headers = { 'content-type': 'application/x-tar' };
    const payload = await tarOf(modelFolder());
    return (
      await stack.request({ method: 'POST', url: '/v1/models?name=x', headers, payload })
    ).json<Model>();
  };
  const { id } = await upload();
  const create = (model: object) =>
    stack.request({ method: 'POST', url: '/v1/jobs', payload: { ...smallSpec(dataset), model } });

  t.test('its configuration is part of the resolved document', async (t) => {
    const reply = await create({ init_from: { model: id } });
    t.equal(reply.statusCode, 201, reply.body);
    const { model } = reply.json<Job>().spec;
    t.strictSame(model.init_from, { model: id });
    t.strictSame((await create({ init_from: id })).json<Job>().spec.model, model, 'as a string');
    t.match(model.config, { model_type: 'llama', hidden_size: 32, tie_word_embeddings: true });
  });

  t.test('its memory is estimated from the model alone', async (t) => {
    const estimate = (model: string) => {
      const spec = { ...smallSpec(dataset), model: { init_from: { model } } };
      return stack.request({ method: 'POST', url: '/v1/estimate', payload: { spec } });
    };
    t.equal((await estimate(id)).json<Estimate>().num_params, (await upload()).num_parameters);
    t.equal((await estimate(`mdl_${'0'.repeat(26)}`)).json<Problem>().code, 'validation_failed');
  });

  t.test('refused: an unknown model', async (t) => {
    const [error] = (await create({ init_from: { model: `mdl_${'0'.repeat(26)}` } })).json<Problem>().errors;
    t.match(error, { pointer: '/model/init_from/model', code: 'model_not_found' });
  });

  t.test('its tokenizer is used unless the document names another one', async (t) => {
    const own = await create({ init_from: { model: id } });
    t.equal(own.json<Job>().spec.data.tokenizer, id);
    const data = { dataset, tokenizer: 'bytes' };
    const payload = { ...smallSpec(dataset), model: { init_from: { model: id } }, data };
    const bytes = await stack.request({ method: 'POST', url: '/v1/jobs', payload });
    t.equal(bytes.json<Job>().spec.data.tokenizer, 'bytes');
  });

  t.test('a model is also kept if only its tokenizer is in use', async (t) => {
    const mine = await upload();
    const payload = { ...smallSpec(dataset), data: { dataset, tokenizer: mine.id } };
    const reply = await stack.request({ method: 'POST', url: '/v1/jobs', payload });
    t.equal(reply.statusCode, 201, reply.body);
    const remove = () => stack.request({ method: 'DELETE', url: `/v1/models/${mine.id}` });
    t.match((await remove()).json<Problem>(), { code: 'model_in_use', status: 409 });
    await stack.request({ method: 'POST', url: `/v1/jobs/${reply.json<Job>().id}/cancel` });
    t.equal((await remove()).statusCode, 204);
    const [error] = (await stack.request({ method: 'POST', url: '/v1/jobs', payload })).json<Problem>()
      .errors;
    t.match(error, {
      pointer: '/data/tokenizer',
      code: 'model_not_found',
      message: `there is no model ${mine.id}`,
    });
  });

  t.test('the base of adapters is kept until the job is deleted', async (t) => {
    const mine = await upload();
    const payload = { ...smallSpec(dataset), model: { init_from: { model: mine.id } } };
    const train = { ...payload.train, adapter: { rank: 2 } };
    const reply = await stack.request({ method: 'POST', url: '/v1/jobs', payload: { ...payload, train } });
    const job = reply.json<Job>();
    t.same(job.spec.model.base, { model: mine.id });
    await stack.request({ method: 'POST', url: `/v1/jobs/${job.id}/cancel` });
    const remove = () => stack.request({ method: 'DELETE', url: `/v1/models/${mine.id}` });
    const refused = (await remove()).json<Problem>();
    t.match(refused, {
      code: 'model_in_use',
      status: 409,
      detail: /adapters of job_.*delete job_.* first/,
    });
    await stack.request({ method: 'DELETE', url: `/v1/jobs/${job.id}` });
    t.equal((await remove()).statusCode, 204);
  });

  t.test('the model is kept until the last job that uses it has ended', async (t) => {
    const mine = await upload();
    const jobs = [];
    for (let i = 0; i < 2; i++) jobs.push((await create({ init_from: { model: mine.id } })).json<Job>().id);
    const remove = () => stack.request({ method: 'DELETE', url: `/v1/models/${mine.id}` });
    for (const job of jobs) {
      t.match((await remove()).json<Problem>(), { code: 'model_in_use', status: 409 });
      await stack.request({ method: 'POST', url: `/v1/jobs/${job}/cancel` });
    }
    t.equal((await remove()).statusCode, 204);
  });
});
