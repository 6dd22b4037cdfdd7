/** Exported GGUF files in llama.cpp: its greedy tokens and its tokens of texts are ours. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gguf } from '@huggingface/gguf';
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { ExportRequest, JobSpec, ModelConfig } from '../../contracts/index.js';
import { tarOf } from '../../formats/testing/models.js';
import { Tokenizer } from '../../formats/tokenizer/tokenizer.js';
import { MODEL_TYPES } from '../../job-document/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack, type TestStack } from '../support/stack.js';
import { FAMILIES, VARIANTS } from './families.js';
import { llamaCpp, runLlama } from './llama-cpp.js';

/** Each word is followed by one other. */
const TEXT =
  'The quick brown fox jumps over a lazy dog, while 42 wizards box; their hex keys vanish. '.repeat(300);
const PROMPTS = ['The quick', 'a lazy', ' wizards b'];
const ANSWER_TOKENS = 40;
/** A small chat model that transformers wrote. */
const FOLDER = join(projectRoot(), 'test', 'e2e', 'hf-llama', 'model');

const llama = await llamaCpp();
if ('missing' in llama) t.comment(llama.missing);

let stack: TestStack;
let dataset: string;

async function trained(spec: JobSpec): Promise<string> {
  const { client } = stack;
  const { id } = await client.jobs.create(spec);
  const job = await client.jobs.until(id, () => false);
  if (job.state !== 'succeeded') throw new Error(JSON.stringify(job.failure));
  const [checkpoint] = await collect(client.jobs.checkpoints(id));
  return checkpoint?.id ?? '';
}

/** Exports a checkpoint, and returns the folder. */
async function exported(checkpoint: string, request: ExportRequest): Promise<string> {
  const { checkpoints } = stack.client;
  let exported = await checkpoints.export(checkpoint, request);
  while (exported.state === 'queued' || exported.state === 'running') {
    await delay(50);
    exported =
      (await checkpoints.exports(checkpoint)).find(({ prefix }) => prefix === exported.prefix) ?? exported;
  }
  if (exported.state === 'failed') throw new Error(JSON.stringify(exported.error));
  return join(stack.data_dir, 'objects', exported.prefix);
}

/** Greedy answers by the API. */
async function answersOf(checkpoint: string, prompts: readonly string[]): Promise<string[]> {
  const answers: string[] = [];
  for (const prompt of prompts) {
    const options = { prompt, temperature: 0, max_tokens: ANSWER_TOKENS };
    const { choices } = await stack.client.samples.create(checkpoint, options);
    answers.push(choices[0]?.text ?? '');
  }
  return answers;
}

t.before(async () => {
  stack = await startStack(t);
  dataset = (await stack.client.datasets.create('words', Buffer.from(TEXT))).id;
});

for (const [name, config] of Object.entries<ModelConfig>({ ...Object.fromEntries(FAMILIES), ...VARIANTS }))
  t.test(name, 'missing' in llama ? { skip: llama.missing } : {}, async (t) => {
    if ('missing' in llama) return;
    const job = smallJob({ name, dataset, steps: 120, ranks: 1 });
    // Products in fp32, as those of llama.cpp over weights in fp32.
    const train = { ...job.train, precision: 'fp32' as const, optimizer: { lr: 1e-2 } };
    const checkpoint = await trained({ ...job, model: { config }, train });
    const file = join(await exported(checkpoint, { format: 'gguf', dtype: 'fp32' }), 'model.gguf');
    const ours = await answersOf(checkpoint, PROMPTS);
    const prompts = PROMPTS.map((prompt) => [...Buffer.from(prompt)]);
    const request = { model: file, texts: [{ text: 'ä\n€', special: false }], prompts };
    const theirs = await runLlama(llama.folder, { ...request, max_tokens: ANSWER_TOKENS });
    t.same(
      theirs.answers.map((answer) => Buffer.from(answer).toString()),
      ours,
    );
    t.same(theirs.tokens, [[...Buffer.from('ä\n€')]]);
    t.ok(new Set(ours.join('')).size > 8, 'the model has learned something');
    const { metadata } = await gguf(file, { allowLocalFile: true });
    t.match(metadata, { 'general.type': 'model' });
  });

t.test('the families that llama.cpp has are compared', async (t) => {
  const compared = [
    ...FAMILIES.map(([type]) => type),
    ...Object.values(VARIANTS).map((one) => one.model_type),
  ];
  t.strictSame(
    MODEL_TYPES.filter((type) => !compared.includes(type)),
    ['olmo3'],
  );
});

/** Unpredictable questions with a predictable answer. */
const CHATS = Array.from({ length: 60 }, (_, index) => {
  const content = `${(Math.imul(index + 1, 0x9e3779b1) >>> 0).toString(36)} What?`;
  const answer = { role: 'assistant', content: 'The answer is 42.' };
  return `${JSON.stringify({ messages: [{ role: 'user', content }, answer] })}\n`;
}).join('');
const PROMPT = '<|im_start|>user\nw1z141z What?<|im_end|>\n<|im_start|>assistant\n';
const TEXTS = [
  PROMPT,
  "Hello's  World!\n\n\tfn main() { 12345 }  \u00e4\u20ac\u{1f600} \u4f60\u597d",
  '<|im_start|> as text <|im_end|>',
  Buffer.from(sampleText()).toString('utf8', 0, 3000),
];

async function uploaded(): Promise<string> {
  const files = new Map(readdirSync(FOLDER).map((name) => [name, readFileSync(join(FOLDER, name))] as const));
  return (await stack.client.models.create('small', await tarOf(files, './'))).id;
}

/** Trains an uploaded model on chats. */
async function trainedOnChats(train: JobSpec['train']): Promise<string> {
  const { client } = stack;
  const chats = (await client.datasets.create('chats', Buffer.from(CHATS), 'jsonl')).id;
  return trained({
    name: 'chats',
    model: { init_from: { model: await uploaded() } },
    data: { dataset: chats, seed: 3 },
    train: {
      steps: 60,
      sequence_length: 64,
      global_batch_size: 8,
      micro_batch_size: 2,
      optimizer: { lr: 1e-2 },
      ...train,
    },
  });
}

const tokenizerText = readFileSync(join(FOLDER, 'tokenizer.json'), 'utf8');
const tokenizer = new Tokenizer(JSON.parse(tokenizerText));

t.test(
  'a chat model: tokens, stop tokens and answers',
  'missing' in llama ? { skip: llama.missing } : {},
  async (t) => {
    if ('missing' in llama) return;
    const checkpoint = await trainedOnChats({});
    const [ours] = await answersOf(checkpoint, [PROMPT]);
    t.equal(ours, 'The answer is 42.');
    const texts = TEXTS.flatMap((text) => [false, true].map((special) => ({ text, special })));
    for (const dtype of ['bf16', 'fp16', 'q8_0'] as const) {
      const folder = await exported(checkpoint, { format: 'gguf', dtype });
      const request = {
        model: join(folder, 'model.gguf'),
        texts,
        prompts: [tokenizer.encode(PROMPT, 'parsed')],
      };
      const theirs = await runLlama(llama.folder, { ...request, max_tokens: ANSWER_TOKENS });
      t.equal(
        tokenizer.decoder.decode(theirs.answers[0] ?? []),
        ours,
        `${dtype}: it ends where the answer ends`,
      );
      t.same(
        theirs.tokens,
        texts.map(({ text, special }) => tokenizer.encode(text, special ? 'parsed' : 'text')),
      );
      t.match(theirs, { eos: 2, addsBos: false });
      const modelfile = readFileSync(join(folder, 'Modelfile'), 'utf8');
      t.match(modelfile, 'FROM ./model.gguf\nTEMPLATE """{{ range .Messages }}');
      t.match(modelfile, 'PARAMETER stop "<|im_end|>"\n');
    }
  },
);

for (const stabilized of [false, true])
  t.test(
    `adapters over their base${stabilized ? ', rank-stabilized' : ''}`,
    'missing' in llama ? { skip: llama.missing } : {},
    async (t) => {
      if ('missing' in llama) return;
      const adapter = {
        rank: 4,
        alpha: 8,
        rank_stabilized: stabilized,
        target_modules: ['q_proj', 'v_proj', 'up_proj', 'down_proj'],
      };
      const precision = 'fp32' as const;
      const checkpoint = await trainedOnChats({ adapter, precision, steps: 200, optimizer: { lr: 3e-2 } });
      const base = await trainedOnChats({ precision, steps: 1, optimizer: { lr: 1e-30 } });
      const file = async (of: string, request: ExportRequest, name: string) =>
        join(await exported(of, { dtype: 'fp32', ...request }), name);
      const merged = await file(checkpoint, { format: 'gguf' }, 'model.gguf');
      const lora = await file(checkpoint, { format: 'gguf_lora' }, 'adapter.gguf');
      const model = await file(base, { format: 'gguf' }, 'model.gguf');
      const prompts = [PROMPT, ...TEXTS.slice(1, 3)].map((text) => tokenizer.encode(text, 'parsed'));
      const request = { texts: [], prompts, max_tokens: ANSWER_TOKENS };
      const expected = await answersOf(checkpoint, [PROMPT]);
      const [whole, over, bare] = [
        await runLlama(llama.folder, { ...request, model: merged }),
        await runLlama(llama.folder, { ...request, model, lora }),
        await runLlama(llama.folder, { ...request, model }),
      ];
      t.same([tokenizer.decoder.decode(whole.answers[0] ?? [])], expected);
      t.same(over.answers, whole.answers);
      t.notSame(bare.answers, whole.answers);
    },
  );
