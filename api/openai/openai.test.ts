/** The translated API through the official client. */
import { request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI, { type APIError, toFile } from 'openai';
import t, { type Test } from 'tap';
import { modelFolder, tarOf } from '../../formats/testing/models.js';
import { storedKeys, upload } from '../testing/model-uploads.js';
import { ADMIN_KEY, startTestStack } from '../testing/stack.js';
import { claimAndTrain } from '../testing/training.js';

const chat = (question: string, answer: string) => ({
  messages: [
    { role: 'user', content: question },
    { role: 'assistant', content: answer },
  ],
});
const LINES = Array.from(
  { length: 30 },
  (_, n) => `${JSON.stringify(chat(`is ${n} even`, n % 2 ? 'no' : 'yes'))}\n`,
);
const TEMPLATE = '{% for m in messages %}{{ m.content }}{% endfor %}';

async function setup() {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const baseURL = `${await stack.listen()}/openai/v1`;
  const clientOf = (apiKey: string) => new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  const client = clientOf(ADMIN_KEY);
  const files = modelFolder().set('chat_template.jinja', Buffer.from(TEMPLATE));
  await upload(stack, await tarOf(files), 'name=org/tiny');
  const send = async (lines = LINES.join(''), name = 'chats.jsonl') =>
    client.files.create({ file: await toFile(Buffer.from(lines), name), purpose: 'fine-tune' });
  return { stack, baseURL, client, clientOf, send };
}

/** Checks that a call is refused with an error of the official client. */
async function refused(t: Test, call: Promise<unknown>, wanted: object) {
  const error = (await call.then(
    () => null,
    (cause: unknown) => cause,
  )) as APIError | null;
  t.match(error, wanted);
  t.type(error?.message, 'string');
}

const { stack, baseURL, client, clientOf, send } = await setup();

t.test('files', async (t) => {
  const file = await send();
  t.match(file, { object: 'file', filename: 'chats.jsonl', purpose: 'fine-tune', status: 'processed' });
  t.equal(file.bytes, LINES.join('').length);
  t.same(await client.files.retrieve(file.id), file);
  t.equal(await (await client.files.content(file.id)).text(), LINES.join(''));
  const others = [];
  for (let n = 0; n < 3; n++) others.push(await send(LINES[n], `${n}.jsonl`));
  const listed: string[] = [];
  for await (const each of client.files.list({ limit: 2 })) listed.push(each.id);
  t.same(listed, [file, ...others].map(({ id }) => id).reverse(), 'all pages, newest first');
  t.same((await client.files.list({ purpose: 'batch' })).data, []);
  t.same(await client.files.delete(file.id), { id: file.id, object: 'file', deleted: true });
  await refused(t, client.files.retrieve(file.id), { status: 404, code: 'dataset_not_found' });

  const before = await storedKeys(stack);
  for (const content of ['{"messages": 1}\n', 'no JSON', ''])
    await refused(t, send(content), { status: 400, type: 'invalid_request_error', param: 'file' });
  const text = await toFile(Buffer.from(LINES.join('')), 'a.jsonl');
  await refused(t, client.files.create({ file: text, purpose: 'assistants' }), {
    status: 400,
    param: 'purpose',
    code: 'unsupported_parameter',
  });
  const expiresAfter = { anchor: 'created_at' as const, seconds: 3600 };
  await refused(t, client.files.create({ file: text, purpose: 'fine-tune', expires_after: expiresAfter }), {
    status: 400,
    param: 'expires_after',
  });
  await refused(t, client.files.list({ order: 'asc' }), { status: 400, param: 'order' });
  t.same(await storedKeys(stack), before, 'a refused file leaves nothing behind');
});

t.test('jobs', async (t) => {
  const { id: trainingFile } = await send();
  const { jobs } = client.fineTuning;
  const job = await jobs.create({
    model: 'org/tiny',
    training_file: trainingFile,
    validation_file: trainingFile,
    suffix: 'tuned',
    seed: 7,
    metadata: { team: 'docs' },
    method: { type: 'supervised', supervised: { hyperparameters: { n_epochs: 2, batch_size: 4 } } },
  });
  t.match(job, {
    object: 'fine_tuning.job',
    model: 'org/tiny',
    status: 'queued',
    training_file: trainingFile,
    validation_file: trainingFile,
    seed: 7,
    metadata: { team: 'docs' },
    hyperparameters: { n_epochs: 2, batch_size: 4, learning_rate_multiplier: 1 },
    fine_tuned_model: null,
    finished_at: null,
    error: null,
    result_files: [],
  });
  t.same(Object.keys(job.metadata ?? {}), ['team']);
  const own = (await stack.store.getJob(job.id))?.spec;
  t.match(own?.train, { epochs: 2, adapter: { rank: 16 }, sequence_length: 2048 });
  t.match(own?.data, { chat_template: TEMPLATE });
  t.same(await jobs.retrieve(job.id), job);

  const second = await jobs.create({ model: 'org/tiny', training_file: trainingFile });
  const listed = [];
  for await (const each of jobs.list({ limit: 1 })) listed.push(each.id);
  t.same(listed, [second.id, job.id]);
  t.same(
    (await jobs.list({ metadata: { team: 'docs' } })).data.map(({ id }) => id),
    [job.id],
  );

  const events = (await jobs.listEvents(job.id)).data;
  t.ok(events.some(({ message }) => message === `Created fine-tuning job: ${job.id}`));
  t.match(events[0], { object: 'fine_tuning.job.event', level: 'info', type: 'message' });
  t.same((await jobs.checkpoints.list(job.id)).data, []);
  t.equal(
    await (await client.files.content(`file-results-${job.id}`)).text(),
    'step,train_loss,valid_loss\n',
  );

  t.equal((await jobs.pause(job.id)).status, 'queued');
  t.equal((await stack.store.getJob(job.id))?.state, 'paused');
  t.equal((await jobs.resume(job.id)).status, 'queued');
  t.match(await jobs.cancel(job.id), { status: 'cancelled', finished_at: /^\d+$/ });
  await refused(t, jobs.pause(job.id), { status: 409, type: 'invalid_request_error' });
});

t.test('what is wrong is told by its parameter', async (t) => {
  const { id: trainingFile } = await send();
  const { jobs } = client.fineTuning;
  const model = 'org/tiny';
  await refused(t, jobs.create({ model: 'gpt-4o-mini', training_file: trainingFile }), {
    status: 404,
    param: 'model',
    message: /there is no model gpt-4o-mini; upload it/,
  });
  await refused(t, jobs.create({ model, training_file: `ds_${'0'.repeat(26)}` }), {
    status: 400,
    param: 'training_file',
    message: /training_file/,
  });
  await refused(t, jobs.create({ model, training_file: 'file-abc' }), {
    status: 400,
    param: 'training_file',
  });
  await refused(t, jobs.create({ model, training_file: trainingFile, method: { type: 'dpo' } }), {
    status: 400,
  });
  const integrations = [{ type: 'wandb' as const, wandb: { project: 'p' } }];
  await refused(t, jobs.create({ model, training_file: trainingFile, integrations }), {
    param: 'integrations',
  });
  await refused(t, clientOf('zf_unknown').files.list(), { status: 401, type: 'authentication_error' });
  await refused(t, client.embeddings.create({ model, input: 'x' }), { status: 404, code: 'not_supported' });
  const bare = await fetch(`${baseURL}/files`);
  t.equal(bare.status, 401);
  t.match(await bare.json(), { error: { code: 'unauthenticated', param: null } });
});

t.test('an id of another form belongs to nothing', async (t) => {
  const { jobs } = client.fineTuning;
  const file = { status: 404, code: 'dataset_not_found', param: 'file_id' };
  const job = { status: 404, code: 'job_not_found', param: 'fine_tuning_job_id' };
  const model = { status: 404, code: 'model_not_found', param: 'model' };
  for (const id of ['file-abc', `ds_${'0'.repeat(26)}`]) {
    await refused(t, client.files.retrieve(id), file);
    await refused(t, client.files.content(id), file);
    await refused(t, client.files.delete(id), file);
  }
  for (const id of ['ftjob-abc', `job_${'0'.repeat(26)}`]) {
    for (const method of ['retrieve', 'cancel', 'pause', 'resume'] as const)
      await refused(t, jobs[method](id), job);
    await refused(t, jobs.listEvents(id), job);
    await refused(t, jobs.checkpoints.list(id), job);
    await refused(t, client.files.retrieve(`file-results-${id}`), job);
  }
  for (const name of ['gpt-4o', 'a'.repeat(200), 'ft:gpt-4o:org::abc'])
    await refused(t, client.models.retrieve(name), model);
  await refused(t, client.uploads.cancel('upload_abc'), { status: 404, code: 'upload_not_found' });
  const { data: audited } = await stack.store.listAudit('default');
  t.match(audited.slice(0, 2), [
    { operation: 'deleteUpload', outcome: 'refused', resource: null },
    { operation: 'resumeJob', outcome: 'refused', resource: `job_${'0'.repeat(26)}` },
  ]);
  await refused(t, jobs.list({ after: 'ftjob-abc' }), { status: 400, param: 'after' });
});

t.test('a request with an Idempotency-Key has one effect', async (t) => {
  const { id: trainingFile } = await send();
  const headers = { 'Idempotency-Key': 'mine' };
  const create = (seed: number) =>
    client.fineTuning.jobs.create({ model: 'org/tiny', training_file: trainingFile, seed }, { headers });
  const job = await create(1);
  t.equal((await create(1)).id, job.id);
  await refused(t, create(2), { status: 400, code: 'idempotency_key_reused' });
  await refused(t, client.files.delete(trainingFile), { status: 409, code: 'dataset_in_use' });

  const own = await stack.request({
    method: 'POST',
    url: `/v1/jobs/${job.id}/cancel`,
    headers: { 'idempotency-key': 'theirs' },
  });
  t.equal(own.statusCode, 202);
  const cancel = (key: string) =>
    client.fineTuning.jobs.cancel(job.id, { headers: { 'Idempotency-Key': key } });
  await refused(t, cancel('theirs'), { status: 400, code: 'idempotency_key_reused' });
  t.match(await cancel('ours'), { object: 'fine_tuning.job', id: job.id });
});

t.test('a form that stops behind its file leaves nothing', async (t) => {
  const stack = await startTestStack({ limits: { idle_connection_ms: 1_500 } });
  t.teardown(() => stack.close());
  const client = httpRequest(`${await stack.listen()}/openai/v1/files`, {
    method: 'POST',
    headers: {
      'content-type': 'multipart/form-data; boundary=b',
      authorization: `Bearer ${ADMIN_KEY}`,
    },
    agent: false,
  });
  client.on('error', () => undefined);
  const part = (field: string) => `--b\r\ncontent-disposition: form-data; name="${field}"\r\n\r\n`;
  const file = part('file').replace('"file"', '"file"; filename="a"');
  client.write(`${part('purpose')}fine-tune\r\n${file}${LINES.join('')}\r\n--b\r\n`);
  const closed = new Promise((resolve) => client.on('close', resolve));
  while ((await stack.store.listDatasets()).data.length === 0) await sleep(10);
  await closed;
  while ((await stack.store.listDatasets()).data.length > 0) await sleep(10);
});

t.test('a running job that is cancelled', async (t) => {
  const { id: trainingFile } = await send();
  const { id } = await client.fineTuning.jobs.create({ model: 'org/tiny', training_file: trainingFile });
  await claimAndTrain(stack.store, id, { steps: 1 });
  t.equal((await client.fineTuning.jobs.cancel(id)).status, 'cancelled');
  t.equal((await stack.store.getJob(id))?.state, 'cancelling');
});

t.test('keys of a project see what is theirs, and scopes hold', async (t) => {
  const file = await send();
  const other = clientOf((await stack.headersIn('elsewhere')).authorization.slice('Bearer '.length));
  t.same((await other.files.list()).data, []);
  await refused(t, other.files.retrieve(file.id), { status: 404 });
  const reader = clientOf((await stack.headersOf('jobs:read')).authorization.slice('Bearer '.length));
  await refused(t, reader.files.delete(file.id), { status: 403, type: 'permission_error' });
  t.equal((await client.files.retrieve(file.id)).id, file.id);
});

t.test('models', async (t) => {
  await upload(stack, await tarOf(modelFolder()), 'name=org/unused');
  const [model] = (await client.models.list()).data;
  t.match(model, { object: 'model', owned_by: 'default' });
  const id = model?.id ?? '';
  t.same(await client.models.retrieve(id), model);
  t.same(await client.models.retrieve('org/unused'), model, 'by its name');
  await refused(t, client.models.retrieve('another'), { status: 404, param: 'model' });
  t.same(await client.models.delete('org/unused'), { id: 'org/unused', object: 'model', deleted: true });
  t.equal(await stack.store.getModel(id), null);
  const { data: audited } = await stack.store.listAudit('default');
  t.match(
    audited.find(({ operation }) => operation === 'deleteModel'),
    { resource: id, outcome: 'succeeded' },
  );
  await refused(t, client.models.delete('org/tiny'), { status: 409, code: 'model_in_use', param: 'model' });
});

t.test('a job of the method reinforcement', async (t) => {
  const { id: trainingFile } = await send();
  const grader = {
    type: 'string_check' as const,
    name: 'exact',
    operation: 'eq' as const,
    input: '{{sample.output_text}}',
    reference: '{{item.answer}}',
  };
  const job = await client.fineTuning.jobs.create({
    model: 'org/tiny',
    training_file: trainingFile,
    method: { type: 'reinforcement', reinforcement: { grader, hyperparameters: { batch_size: 4 } } },
  });
  t.match(job.method, {
    type: 'reinforcement',
    reinforcement: { grader, hyperparameters: { batch_size: 4, n_epochs: 3 } },
  });
  const own = (await stack.store.getJob(job.id))?.spec;
  t.match(own?.train.objective, { type: 'grpo', grader, prompts_per_step: 4, group_size: 8 });
});
