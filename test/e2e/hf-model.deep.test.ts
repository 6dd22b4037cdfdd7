/**
 * A Hugging Face checkpoint created by transformers is uploaded, trained and exported, and transformers loads the
 * result.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ApiError, collect } from '../../clients/typescript/index.js';
import type { JobExport, JobSpec } from '../../contracts/index.js';
import { tarOf, tensorsOf } from '../../formats/testing/models.js';
import { sampleText as continueText } from '../../ops/sample/sample-text.js';
import { projectRoot } from '../../platform/process/root.js';
import { pythonWith, runPython } from '../support/python.js';
import { sampleText, startStack, type TestStack } from '../support/stack.js';

const HERE = join(projectRoot(), 'test', 'e2e', 'hf-llama');
const FOLDER = join(HERE, 'model');
const STEPS = 6;
const TOKENIZER_FILES = ['chat_template.jinja', 'tokenizer.json', 'tokenizer_config.json'];
const GENERATION_CONFIG = 'generation_config.json';

/** Unpredictable questions with a predictable answer. */
const CHATS = Array.from({ length: 60 }, (_, index) => {
  const asked = (seed: number) => `${(Math.imul(seed + 1, 0x9e3779b1) >>> 0).toString(36)} What?`;
  const turns = [asked(index), ...(index % 4 === 0 ? [asked(index + 1000)] : [])];
  const messages = turns.flatMap((content) => [
    { role: 'user', content },
    { role: 'assistant', content: 'The answer is 42.' },
  ]);
  return `${JSON.stringify({ messages })}\n`;
}).join('');
const PROMPT = '<|im_start|>user\nw1z141z What?<|im_end|>\n<|im_start|>assistant\n';

const python = pythonWith('torch', 'transformers');

let stack: TestStack;
let dataset: string;
let model: string;

const folder = () =>
  new Map(readdirSync(FOLDER).map((name) => [name, readFileSync(join(FOLDER, name))] as const));

/** A job that starts from the model, without a configuration. */
const specOf = (ranks: number, changes: Partial<JobSpec['train']> = {}): JobSpec => ({
  name: `${ranks} ranks`,
  model: { init_from: { model } },
  data: { dataset, tokenizer: 'bytes', seed: 3 },
  train: { steps: STEPS, sequence_length: 32, global_batch_size: 10, micro_batch_size: 2, ...changes },
  zero: { bucket_bytes: 16384 * 4 },
  resources: { ranks: { min: 1, max: 4, preferred: ranks } },
});

async function exported(spec: JobSpec): Promise<JobExport> {
  const { id } = await stack.client.jobs.create(spec);
  const job = await stack.client.jobs.until(id, () => false);
  if (!job.export) throw new Error(`no export: ${job.state} ${JSON.stringify(job.failure)}`);
  return job.export;
}

const exportDir = ({ prefix }: JobExport) => join(stack.data_dir, 'objects', prefix);

t.before(async () => {
  stack = await startStack(t);
  dataset = (await stack.client.datasets.create('openapi', sampleText())).id;
  model = (await stack.client.models.create('small', await tarOf(folder(), './'))).id;
});

t.test('trained on 2 and on 3 ranks it ends with the same bits, different from fresh weights', async (t) => {
  const on2 = await exported(specOf(2));
  const on3 = await exported(specOf(3));
  t.equal(on3.state_digest, on2.state_digest);
  t.same(on3.files, on2.files);
  const config = JSON.parse(String(folder().get('config.json')));
  const fresh = await exported({ ...specOf(2), model: { config } });
  t.not(fresh.state_digest, on2.state_digest);
  await t.test(
    'transformers loads the export',
    'missing' in python ? { skip: python.missing } : {},
    async (t) => {
      if (!('python' in python)) return;
      const loaded = runPython(python.python, join(HERE, 'check.py'), [exportDir(on2)]);
      t.match(loaded, {
        missing_keys: [],
        unexpected_keys: [],
        mismatched_keys: [],
        dtype: 'torch.bfloat16',
      });
      t.ok((loaded as { loss: number }).loss > 0);
    },
  );
});

t.test(
  'fine-tuned on chats: the loss is that of the answers, with the same bits on any number of ranks',
  async (t) => {
    const { client } = stack;
    const chats = (await client.datasets.create('chats', CHATS, 'jsonl')).id;
    const train = {
      steps: 60,
      sequence_length: 64,
      global_batch_size: 8,
      micro_batch_size: 2,
      optimizer: { lr: 1e-2 },
    };
    const chatSpec = (ranks: number): JobSpec => ({ ...specOf(ranks), data: { dataset: chats }, train });
    const eventsOf = async (id: string, type: string) =>
      (await collect(client.jobs.events(id))).filter((event) => event.type === type).map(({ data }) => data);

    const job = await client.jobs.until((await client.jobs.create(chatSpec(1))).id, () => false);
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    const { id } = await client.jobs.create(chatSpec(2));
    await client.jobs.until(id, ({ progress }) => progress.step >= 5, { interval_ms: 20 });
    await client.jobs.pause(id);
    await client.jobs.until(id, ({ state }) => state === 'paused', { interval_ms: 20 });
    await client.jobs.resume(id, { ranks: 1 });
    const resumed = await client.jobs.until(id, () => false);
    t.equal(resumed.export?.state_digest, job.export?.state_digest);
    for (const name of [...TOKENIZER_FILES, GENERATION_CONFIG])
      t.ok(readFileSync(join(exportDir(resumed.export!), name)).equals(folder().get(name)!), name);
    const [data] = await eventsOf(job.id, 'data.prepared');
    t.match(data, { documents: 60, long_documents: 0, validation_sequences: 0 });
    t.same(await eventsOf(id, 'data.prepared'), [data, data]);

    const [checkpoint] = await collect(client.jobs.checkpoints(job.id));
    const { choices } = await client.samples.create(checkpoint!.id, { prompt: PROMPT, temperature: 0 });
    const completion = choices[0]?.text;
    t.equal(completion, 'The answer is 42.', 'it ends where the answer ends');
    const options = { prompt: PROMPT, max_tokens: 40, temperature: 0, seed: 1 };
    t.equal(await continueText(exportDir(job.export!), options), PROMPT + completion);

    // One step over all data: its loss is that of the initial weights.
    const { id: once } = await client.jobs.create({
      ...chatSpec(2),
      model: {
        init_from: { checkpoint: checkpoint!.id },
        config: JSON.parse(String(folder().get('config.json'))),
      },
      data: { dataset: chats, tokenizer: model },
      train: { ...train, steps: 1, micro_batch_size: 1, global_batch_size: Number(data?.sequences) },
    });
    t.equal((await client.jobs.until(once, () => false)).state, 'succeeded');
    const [metric] = await collect(client.jobs.metrics(once));
    const missing = 'missing' in python ? { skip: python.missing } : {};
    await t.test('transformers computes the same loss and the same continuation', missing, async (t) => {
      if (!('python' in python)) return;
      const file = join(t.testdir(), 'chats.jsonl');
      writeFileSync(file, CHATS);
      const found = runPython(python.python, join(HERE, 'check_chats.py'), [
        exportDir(job.export!),
        file,
        PROMPT,
      ]);
      const { targets, loss, loss_of_all, ...rest } = found as Record<string, number>;
      t.equal(targets, data?.targets);
      const ours = metric?.loss ?? Number.NaN;
      t.ok(Math.abs(ours - loss!) < 0.02 * loss!, `${ours} here, ${loss} there`);
      t.ok(loss_of_all! > 2 * loss!, `the loss of all tokens differs: ${loss_of_all}`);
      t.same(rest, { completion });
      t.match(runPython(python.python, join(HERE, 'check.py'), [exportDir(job.export!)]), {
        missing_keys: [],
        unexpected_keys: [],
        mismatched_keys: [],
      });
    });
  },
);

t.test('the loaded model is exported unchanged', async (t) => {
  const result = await exported(specOf(3, { steps: 1, overrides: [{ step: 0, lr: 0 }] }));
  const theirs = [...folder()].filter(([name]) => name.endsWith('.safetensors')).map(([, file]) => file);
  const ours = readFileSync(join(exportDir(result), 'model.safetensors'));
  t.strictSame(tensorsOf([ours]), tensorsOf(theirs));
  const exportedAs = (name: string) => readFileSync(join(exportDir(result), name));
  t.ok(exportedAs(GENERATION_CONFIG).equals(folder().get(GENERATION_CONFIG)!));
  const config = JSON.parse(String(folder().get('config.json')));
  t.same(JSON.parse(exportedAs('config.json').toString()), {
    ...config,
    torch_dtype: 'bfloat16',
  });
  const names = readdirSync(exportDir(result));
  t.notOk(
    TOKENIZER_FILES.some((name) => names.includes(name)),
    'its tokens are bytes, so the tokenizer no longer matches the weights',
  );
});

t.test('a model in use cannot be deleted, an unused one can', async (t) => {
  const refused = async (work: Promise<unknown>) => {
    const error = await work.then(
      () => null,
      (error: unknown) => error,
    );
    return error instanceof ApiError ? error.code : String(error);
  };
  const { id } = await stack.client.jobs.create(specOf(1, { steps: 10_000 }));
  t.equal(await refused(stack.client.models.delete(model)), 'model_in_use');
  await stack.client.jobs.cancel(id);
  await stack.client.jobs.until(id, () => false);
  await stack.client.models.delete(model);
  t.equal(await refused(stack.client.jobs.create(specOf(1))), 'validation_failed');
});
