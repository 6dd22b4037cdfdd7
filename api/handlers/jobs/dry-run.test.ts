/** Field `work` of a dry run: sequences, tokens, epochs, and the duration estimated from a measured job. */
import t from 'tap';
import type { DataPreview, DryRun, Job, JobEvent, JobSpec, Problem } from '../../../contracts/index.js';
import { workOf as estimateWork } from '../../jobs/work.js';
import { smallSpec, startTestStack } from '../../testing/stack.js';
import { claimAndTrain } from '../../testing/training.js';

const stack = await startTestStack();
t.teardown(() => stack.close());

const TEXT = 'to be or not to be, that is the question. '.repeat(200);

async function workOf(spec: object): Promise<DryRun['work']> {
  const reply = await stack.request({ method: 'POST', url: '/v1/jobs?dry_run=true', payload: spec });
  if (reply.statusCode !== 200) throw new Error(reply.body);
  return reply.json<DryRun>().work;
}

t.test('sequences, tokens and epochs of the steps', async (t) => {
  const { id } = await stack.upload(TEXT);
  const sequencesPerEpoch = Math.floor((TEXT.length - 1) / 128);
  t.strictSame(await workOf(smallSpec(id)), {
    sequences: 10 * 16,
    tokens: 10 * 16 * 128,
    sequences_per_epoch: sequencesPerEpoch,
    epochs: 160 / sequencesPerEpoch,
    duration: null,
  });
  const aside = await workOf({ ...smallSpec(id), data: { dataset: id, validation_fraction: 0.1 } });
  t.equal(aside.sequences_per_epoch, sequencesPerEpoch - Math.round(sequencesPerEpoch / 10));
});

t.test('epochs instead of steps', async (t) => {
  const { id } = await stack.upload(TEXT);
  const sequences = Math.floor((TEXT.length - 1) / 128);
  const steps = Math.ceil((3 * sequences) / 16);
  const work = await workOf({ ...smallSpec(id), train: { epochs: 3 } });
  t.match(work, { sequences: 16 * steps, epochs: (16 * steps) / sequences });
  const job = await stack.createJob({ data: { dataset: id }, train: { epochs: 3 } });
  t.match(job, { spec: { train: { steps } }, progress: { total_steps: steps } });
  t.notOk('epochs' in job.spec.train);
});

const PAIR = { prompt: 'to be or ', chosen: 'not to be', rejected: 'to do' };

t.test('an epoch of preferences is known from the record of the dataset', async (t) => {
  const { id, ...counts } = await stack.upload(`${JSON.stringify(PAIR)}\n`.repeat(50), 'jsonl');
  t.match(counts, { num_documents: 50, num_preferences: 50, num_labelled: 0, num_chats: 0 });
  const spec = (type: 'dpo' | 'kto', data = {}) => ({
    ...smallSpec(id),
    data: { dataset: id, ...data },
    train: { epochs: 2, objective: { type } },
  });
  const pairs = { sequences: 2 * 7 * 16, tokens: 2 * 7 * 16 * 128, sequences_per_epoch: 100, epochs: 2.24 };
  t.match(await workOf(spec('dpo')), pairs);
  t.match(await workOf(spec('kto')), { sequences: 13 * 16, sequences_per_epoch: 100, epochs: 2.08 });
  t.match(await workOf(spec('dpo', { validation_fraction: 0.1 })), {
    sequences: 192,
    sequences_per_epoch: 90,
  });
  const job = await stack.createJob({
    data: { dataset: id },
    train: { steps: 10, objective: { type: 'dpo' } },
  });
  const execution = await claimAndTrain(stack.store, job.id, { steps: 1 });
  await stack.store.appendEvent(job.id, execution, { type: 'data.prepared', data: { sequences: 98 } });
  t.match(await workOf(spec('dpo')), { sequences_per_epoch: 98 }, 'a pair was left out');
  t.match(await workOf(spec('kto')), { sequences_per_epoch: 100 }, 'another unit');
});

t.test('preferences and their objective belong together', async (t) => {
  const { id } = await stack.upload(`${JSON.stringify(PAIR)}\n`, 'jsonl');
  const { id: text } = await stack.upload(TEXT);
  const refused = async (dataset: string, train: Partial<JobSpec['train']>) => {
    const spec = { ...smallSpec(dataset), train: { steps: 1, ...train } };
    const reply = await stack.request({ method: 'POST', url: '/v1/jobs?dry_run=true', payload: spec });
    return reply.json<Problem>().errors?.map(({ pointer, code }) => `${pointer} ${code}`);
  };
  t.same(await refused(id, {}), ['/data/dataset dataset_has_preferences']);
  t.same(await refused(text, { objective: { type: 'simpo' } }), [
    '/data/dataset dataset_without_preferences',
  ]);
  t.same(await refused(id, { objective: { type: 'dpo', gamma: 1 } }), [
    '/train/objective/gamma field_without_effect',
  ]);
});

t.test('duration from the speed of another job of the pool', async (t) => {
  const model = (numHiddenLayers: number): JobSpec['model'] => ({
    config: {
      model_type: 'llama',
      hidden_size: 32,
      intermediate_size: 64,
      num_hidden_layers: numHiddenLayers,
      num_attention_heads: 4,
      vocab_size: 256,
    },
  });
  const measured = await stack.createJob({ model: model(2) });
  // Two ranks with 10,000 tokens per second together.
  await claimAndTrain(stack.store, measured.id, { steps: 3, finish: true });
  const spec = { ...smallSpec(measured.spec.data.dataset ?? ''), model: model(2) };
  const { duration, tokens } = await workOf(spec);
  t.match(duration, { tokens_per_second: 10_000, ranks: 2, measured_by: measured.id });
  t.equal(duration?.seconds, (tokens ?? 0) / 10_000);
  const ranks = { min: 1, max: 4, preferred: 4 };
  t.equal((await workOf({ ...spec, resources: { ranks } })).duration?.tokens_per_second, 20_000);

  // FLOPs: projections, MLP and norms of a layer; the head; attention over 64 tokens on average.
  const costs = (layers: number) => 2 * (layers * (4096 + 6144 + 64) + 32 + 8192) + layers * 8192;
  const larger = (await workOf({ ...spec, model: model(6) })).duration;
  t.ok(Math.abs((larger?.tokens_per_second ?? 0) / ((10_000 * costs(2)) / costs(6)) - 1) < 1e-9);

  const nearer = await stack.createJob({ model: model(5) });
  await claimAndTrain(stack.store, nearer.id, { steps: 1 });
  t.equal((await workOf({ ...spec, model: model(6) })).duration?.measured_by, nearer.id, 'the nearest');
  t.equal((await workOf({ ...spec, model: model(1) })).duration?.measured_by, measured.id);
  t.equal((await workOf({ ...spec, resources: { pool: 'gpu' } })).duration, null, 'another pool');
  t.equal((await workOf({ ...spec, train: { steps: 1, precision: 'fp32' } })).duration, null);
});

t.test('cost, at what a rank of the measured job has cost', async (t) => {
  const job = await stack.createJob();
  const progress = { ...job.progress, tokens_per_second: 1000 };
  const costOf = async (usage: Job['usage']) => {
    const jobs = { data: [{ ...job, usage, progress, world_size: 1 }], next_cursor: null };
    const attempts = { data: [], next_cursor: null };
    const records = {
      getDataset: async () => null,
      listJobs: async () => jobs,
      listAttempts: async () => attempts,
    };
    const { duration } = await estimateWork(job.spec, { records, events: async () => [] });
    return (duration?.cost ?? Number.NaN) / (duration?.seconds ?? Number.NaN);
  };
  const ranks = job.spec.resources.ranks.preferred;
  // 12 for 60 seconds of a rank.
  t.equal(await costOf({ run_seconds: 30, rank_seconds: 60, cost: 12 }), 0.2 * ranks);
  t.equal(await costOf({ run_seconds: 30, rank_seconds: 60, cost: 0 }), 0);
  t.ok(Number.isNaN(await costOf({ run_seconds: 0, rank_seconds: 0, cost: 0 })), 'unknown');
});

t.test('padding: tokens are useful ones, and a position of a sequence costs the same', async (t) => {
  const job = await stack.createJob();
  const progress = { ...job.progress, step: 1, tokens_per_second: 1000, padding: 0.75 };
  const records = {
    getDataset: async () => null,
    listJobs: async () => ({ data: [{ ...job, progress, world_size: 1 }], next_cursor: null }),
    listAttempts: async () => ({ data: [], next_cursor: null }),
  };
  const prepared = { type: 'data.prepared', data: { sequences: 100, padding: 0.5 } } as unknown as JobEvent;
  const work = await estimateWork(job.spec, { records, events: async () => [prepared] });
  const { steps, global_batch_size, sequence_length } = job.spec.train;
  const positions = (steps ?? 0) * global_batch_size * sequence_length;
  const ranks = job.spec.resources.ranks.preferred;
  t.equal(work.tokens, positions / 2);
  t.equal(work.duration?.tokens_per_second, 2000 * ranks);
  t.equal(work.duration?.seconds, positions / (4000 * ranks));
});

t.test('an epoch of data that another job has prepared', async (t) => {
  const { id } = await stack.upload('{"text": "to be or not to be"}\n'.repeat(50), 'jsonl');
  const spec = smallSpec(id);
  t.match(await workOf(spec), { sequences_per_epoch: null, epochs: null });
  const job = await stack.createJob({ data: { dataset: id } });
  const execution = await claimAndTrain(stack.store, job.id, { steps: 1 });
  await stack.store.appendEvent(job.id, execution, { type: 'data.prepared', data: { sequences: 40 } });
  t.match(await workOf(spec), { sequences_per_epoch: 40, epochs: 4 });
  t.match(await workOf({ ...spec, data: { dataset: id, seed: 2 } }), { sequences_per_epoch: 40 });
  t.match(await workOf({ ...spec, data: { dataset: id, packing: 'split' } }), { sequences_per_epoch: null });
  const epochs = { ...spec, train: { epochs: 3, global_batch_size: 16 } };
  t.match(await workOf(epochs), { sequences: 8 * 16, sequences_per_epoch: 40, epochs: 3.2 });
  t.match(await workOf({ ...epochs, data: { dataset: id, packing: 'split' } }), {
    sequences: null,
    tokens: null,
    sequences_per_epoch: null,
    epochs: 3,
    duration: null,
  });
});

t.test('warnings about the beginning of the data, and errors of its template', async (t) => {
  const turn = (role: string, content: string) => ({ role, content });
  const lines = [
    { messages: [turn('user', 'a'), turn('assistant', 'b')] },
    { messages: [turn('system', 'c'), turn('user', 'a'), turn('assistant', 'b')] },
  ].map((line) => `${JSON.stringify(line)}\n`);
  // More than what is read.
  const { id } = await stack.upload(lines.join('') + lines[0]?.repeat(5000), 'jsonl');
  const dryRun = (document: object) =>
    stack.request({ method: 'POST', url: '/v1/jobs?dry_run=true', payload: document });
  const spec = (chatTemplate: string) => ({
    ...smallSpec(id),
    data: { dataset: id, chat_template: chatTemplate },
    train: { steps: 1, sequence_length: 8 },
  });
  const users =
    "{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }};{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
  const found = (await dryRun(spec(users))).json<DryRun>().warnings;
  const preview = await stack.request({
    method: 'POST',
    url: '/v1/data-preview',
    payload: { spec: spec(users) },
  });
  t.strictSame(found, preview.json<DataPreview>().warnings, 'those of the preview');
  t.match(found, [
    { code: 'cut', pointer: '/train/sequence_length' },
    { code: 'system_not_rendered', message: /in 1 of \d+ texts \(the first in line 2\)/ },
  ]);
  t.ok((preview.json<DataPreview>().read?.share ?? 1) < 1, 'only the beginning is read');
  const sound = users.replace(" if m.role != 'system'", '');
  const { warnings } = (await dryRun({ ...spec(sound), train: { steps: 1, sequence_length: 64 } })).json();
  t.strictSame(warnings, []);
  const failing = `{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}${sound}`;
  t.match((await dryRun(spec(failing))).json<Problem>(), {
    code: 'chat_template_invalid',
    detail: /^line 2: /,
  });
});
