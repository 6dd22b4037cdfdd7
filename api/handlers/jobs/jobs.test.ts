import t from 'tap';
import type { Job, JobSpec, Problem } from '../../../contracts/index.js';
import { smallSpec, startTestStack } from '../../testing/stack.js';

t.test('jobs', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const dataset = await stack.upload('some text to train on, long enough for a sequence. '.repeat(10));
  const create = (payload: unknown, headers = {}) =>
    stack.request({ method: 'POST', url: '/v1/jobs', payload: payload as object, headers });

  t.test('a job is created with every default filled in', async (t) => {
    const reply = await create(smallSpec(dataset.id));
    t.equal(reply.statusCode, 201);
    const job = reply.json<Job>();
    t.equal(reply.headers.location, `/v1/jobs/${job.id}`);
    t.equal(job.state, 'queued');
    t.equal(job.requested_ranks, 2);
    t.equal(job.spec.train.global_batch_size, 16);
    t.equal(job.spec.zero.reduce_dtype, 'bf16');
    t.match(job.spec.model.config, { head_dim: 32 });
    t.same((await stack.request({ url: `/v1/jobs/${job.id}` })).json(), job);
  });

  t.test('the object store has the document of every recorded job and no other', async (t) => {
    const documents = async () => {
      const keys: string[] = [];
      for await (const { key } of stack.objects.list('jobs/')) keys.push(key);
      return keys;
    };
    const before = new Set(await documents());
    const headers = { 'idempotency-key': 'document-1' };
    const job = (await create(smallSpec(dataset.id), headers)).json<Job>();
    t.equal((await create(smallSpec(dataset.id), headers)).headers['idempotent-replayed'], 'true');
    t.equal((await create({ ...smallSpec(dataset.id), name: 'another' }, headers)).statusCode, 422);
    const added = (await documents()).filter((key) => !before.has(key));
    t.same(added, [`jobs/${job.id}/desired.json`, `jobs/${job.id}/spec.json`]);
    const document = JSON.parse((await stack.objects.get(`jobs/${job.id}/spec.json`)).toString());
    t.match(document, {
      format_version: 2,
      job_id: job.id,
      spec: job.spec,
      idempotency: { body_hash: String },
    });
    t.notMatch(JSON.stringify(document), 'document-1', 'the key is free text and is not stored');
  });

  t.test('all bad fields are reported together, with suggestions', async (t) => {
    const spec = {
      ...smallSpec(dataset.id),
      labls: {},
      train: { stepz: 3, steps: 0, sequence_length: '128', optimizer: { type: 'adamm', betas: [0.9] } },
    };
    const reply = await create(spec);
    t.equal(reply.statusCode, 422);
    t.match(reply.headers['content-type'], /^application\/problem\+json/);
    const problem = reply.json<Problem>();
    t.equal(problem.code, 'validation_failed');
    t.same(summary(problem), [
      '/labls unknown_field labels',
      '/train/optimizer/betas wrong_length',
      '/train/optimizer/type unknown_value adamw',
      '/train/sequence_length wrong_type',
      '/train/steps out_of_range',
      '/train/stepz unknown_field steps',
    ]);
  });

  t.test('rules between fields are checked despite unknown fields', async (t) => {
    const reply = await create({
      ...smallSpec('ds_00000000000000000000000000'),
      nmae: 'x',
      train: { steps: 1, global_batch_size: 16, micro_batch_size: 5 },
    });
    t.same(summary(reply.json()), [
      '/data/dataset dataset_not_found',
      '/nmae unknown_field name',
      '/train/micro_batch_size micro_batch_not_divisor 4',
    ]);
  });

  t.test('field names of other programs lead to suggestions', async (t) => {
    const reply = await create({
      ...smallSpec(dataset.id),
      train: {
        steps: 1,
        learning_rate: 1,
        batch_size: 4,
        seq_len: 9,
        optimizer: { learning_rate: 1, foo: 1 },
      },
    });
    t.same(summary(reply.json()), [
      '/train/batch_size unknown_field global_batch_size',
      '/train/learning_rate unknown_field optimizer.lr',
      '/train/optimizer/foo unknown_field',
      '/train/optimizer/learning_rate unknown_field lr',
      '/train/seq_len unknown_field sequence_length',
    ]);
  });

  t.test('a bad number causes no errors at other fields', async (t) => {
    const reply = await create({
      ...smallSpec(dataset.id),
      train: { steps: 1, global_batch_size: -7, micro_batch_size: 5 },
    });
    t.same(summary(reply.json()), ['/train/global_batch_size out_of_range']);
  });

  const refused: [string, (spec: JobSpec) => unknown, string][] = [
    ['an empty document', () => ({}), '/data missing_field,/model missing_field,/train missing_field'],
    ['a list', () => [], ' wrong_type'],
    [
      'preset and config',
      (s) => ({ ...s, model: { preset: 'llama-tiny', config: llama() } }),
      '/model exactly_one_of',
    ],
    ['neither preset nor config', (s) => ({ ...s, model: {} }), '/model exactly_one_of'],
    [
      'an unknown preset',
      (s) => ({ ...s, model: { preset: 'llama-tny' } }),
      '/model/preset unknown_value llama-tiny',
    ],
    [
      'scaled rotary positions',
      (s) => ({ ...s, model: { config: { ...llama(), rope_scaling: { type: 'linear' } } } }),
      '/model/config/rope_scaling/factor missing_field',
    ],
    [
      'an activation that is not implemented',
      (s) => ({ ...s, model: { config: { ...llama(), hidden_act: 'gelu' } } }),
      '/model/config/hidden_act model_field_unsupported silu',
    ],
    [
      'a sequence longer than the data',
      (s) => ({ ...s, train: { steps: 1, sequence_length: 2000 } }),
      '/train/sequence_length sequence_longer_than_data 509',
    ],
    [
      'more ranks than leaves',
      (s) => ({ ...s, resources: { ranks: { max: 5 } } }),
      '/resources/ranks/max too_many_ranks 4',
    ],
    ['a bad pool', (s) => ({ ...s, resources: { pool: 'No Spaces' } }), '/resources/pool wrong_format'],
    ['a label that is not a string', (s) => ({ ...s, labels: { a: 1 } }), '/labels/a wrong_type'],
    ['a bad label name', (s) => ({ ...s, labels: { 'a=b': '1' } }), '/labels/a=b wrong_format'],
  ];
  for (const [name, change, wanted] of refused) {
    t.test(`refused: ${name}`, async (t) => {
      const reply = await create(change(smallSpec(dataset.id) as JobSpec));
      t.equal(reply.statusCode, 422);
      t.equal(summary(reply.json()).join(), wanted);
    });
  }

  t.test('a body that cannot be read', async (t) => {
    const send = async (payload: string, type: string | undefined) => {
      const headers = type === undefined ? {} : { 'content-type': type };
      return (await stack.request({ method: 'POST', url: '/v1/jobs', payload, headers })).json<Problem>()
        .code;
    };
    t.equal(await send('{"model":', 'application/json'), 'malformed_json');
    t.equal(await send('{"__proto__": {"a": 1}}', 'application/json'), 'malformed_json');
    t.equal(await send('', 'application/json'), 'body_required');
    t.equal(await send('a: b', 'application/yaml'), 'unsupported_media_type');
    t.equal(await send('a text', 'text/plain'), 'unsupported_media_type');
    t.equal(await send(JSON.stringify({ x: 'y'.repeat(2 ** 20) }), 'application/json'), 'payload_too_large');
  });

  t.test('idempotency: a repeated request has one effect', async (t) => {
    const headers = { 'idempotency-key': 'once' };
    const spec = smallSpec(dataset.id);
    const first = await create(spec, headers);
    const again = await create(spec, headers);
    t.equal(first.statusCode, 201);
    t.equal(first.headers['idempotent-replayed'], undefined);
    t.equal(again.statusCode, 201);
    t.equal(again.headers['idempotent-replayed'], 'true');
    t.equal(again.json<Job>().id, first.json<Job>().id);

    const { model, ...rest } = spec;
    t.equal(
      (await create({ ...rest, model }, headers)).json<Job>().id,
      first.json<Job>().id,
      'order does not matter',
    );
    const other = await create({ ...spec, name: 'other' }, headers);
    t.equal(other.statusCode, 422);
    t.equal(other.json<Problem>().code, 'idempotency_key_reused');
    t.equal(
      (await create(spec, { 'idempotency-key': 'with space' })).json<Problem>().code,
      'invalid_parameter',
    );
  });

  t.test('idempotency: concurrent requests create one job', async (t) => {
    const headers = { 'idempotency-key': 'at-once' };
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => create(smallSpec(dataset.id), headers)),
    );
    t.equal(new Set(replies.map((reply) => reply.json<Job>().id)).size, 1);
    t.equal(replies.filter((reply) => reply.headers['idempotent-replayed'] === undefined).length, 1);
  });

  t.test('the entity tag changes with the job', async (t) => {
    const job = (await create(smallSpec(dataset.id))).json<Job>();
    const url = `/v1/jobs/${job.id}`;
    const tag = String((await stack.request({ url })).headers.etag);
    const same = await stack.request({ url, headers: { 'if-none-match': `"other", W/${tag}` } });
    t.equal(same.statusCode, 304);
    t.equal(same.body, '');
    await stack.request({ method: 'POST', url: `${url}/pause` });
    const changed = await stack.request({ url, headers: { 'if-none-match': tag } });
    t.equal(changed.statusCode, 200);
    t.not(changed.headers.etag, tag);
  });

  t.test('unknown and malformed identifiers', async (t) => {
    const missing = await stack.request({ url: '/v1/jobs/job_00000000000000000000000000' });
    t.equal(missing.statusCode, 404);
    t.equal(missing.json<Problem>().code, 'job_not_found');
    const malformed = await stack.request({ url: '/v1/jobs/nonsense' });
    t.equal(malformed.statusCode, 400);
    t.equal(malformed.json<Problem>().errors[0]?.pointer, '/path/job_id');
  });
});

function llama() {
  return {
    model_type: 'llama',
    hidden_size: 64,
    intermediate_size: 128,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    vocab_size: 256,
  };
}

/** `pointer code suggestion` of each bad field, sorted. */
function summary({ errors }: Problem): string[] {
  return errors.map((e) => [e.pointer, e.code, ...(e.suggestion ? [e.suggestion] : [])].join(' ')).sort();
}
