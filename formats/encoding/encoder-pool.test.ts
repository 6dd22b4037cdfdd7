import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { type Batch, BatchEncoder, type EncodedBatch, type EncoderSetup } from './encode-batch.js';
import { EncoderPool } from './encoder-pool.js';

const { tokenizers, templates } = JSON.parse(
  readFileSync(join(projectRoot(), 'worker', 'tasks', 'data', 'golden', 'chats.json'), 'utf8'),
);
const [{ tokenizer, config }] = tokenizers;
const FILES = {
  tokenizer: JSON.stringify(tokenizer),
  config: JSON.stringify(config),
  special_tokens_map: null,
};
const SETUP: EncoderSetup = {
  tokenizer: FILES,
  parse_special_tokens: false,
  unit: null,
  chat_template: templates.chatml,
  template_date: null,
};

/** Returns batches of very different sizes, so that threads finish out of order. */
function batches(count: number): Batch[] {
  return Array.from({ length: count }, (_, index) => {
    const chat = {
      messages: [
        { role: 'user', content: `question ${index}` },
        { role: 'assistant', content: 'answer '.repeat(index % 3 === 0 ? 300 : 1) },
      ],
    };
    const lines = [JSON.stringify({ text: `text ${index}` }), '', JSON.stringify(chat)];
    return { bytes: Buffer.from(`${lines.join('\n')}\n`), first_line: 3 * index + 1 };
  });
}

async function* stream(given: readonly Batch[]): AsyncGenerator<Batch> {
  yield* given;
}

async function encode(given: AsyncIterable<Batch>, threads: number, setup = SETUP): Promise<EncodedBatch[]> {
  const pool = new EncoderPool(setup, threads);
  try {
    const encoded: EncodedBatch[] = [];
    for await (const batch of pool.encode(given)) encoded.push(batch);
    return encoded;
  } finally {
    await pool.close();
  }
}

t.test('any number of threads gives the tokens of each batch in order', async (t) => {
  const encoder = new BatchEncoder(SETUP);
  const expected = batches(20).map((batch) => encoder.encode(batch));
  t.same(
    expected.map(({ lengths }) => lengths.length),
    new Array(20).fill(2),
    'blank lines are skipped',
  );
  for (const threads of [1, 2, 3]) t.same(await encode(stream(batches(20)), threads), expected);
});

t.test('the error is that of the first bad line, whichever thread finds it first', async (t) => {
  const given = batches(12);
  const bad = (index: number, line: string) => {
    given[index] = { bytes: Buffer.from(`\n${line}\n`), first_line: 3 * index + 1 };
  };
  bad(3, `${' '.repeat(200_000)}{"text": 3}`);
  bad(4, '{"txt": 3}');
  for (const threads of [1, 2, 3])
    await t.rejects(encode(stream(given), threads), {
      code: 'dataset_line_invalid',
      message: /^line 11: "text" must be a string/,
    });
});

t.test('the error of a failing template names the line, and that of a tokenizer the reason', async (t) => {
  const failing = { ...SETUP, chat_template: "{{ raise_exception('no roles') }}" };
  await t.rejects(encode(stream(batches(1)), 1, failing), {
    code: 'chat_template_invalid',
    message: /^line 3: .*no roles/,
  });
  const broken = { ...SETUP, tokenizer: { ...FILES, tokenizer: '{' } };
  await t.rejects(encode(stream(batches(1)), 2, broken), { code: 'tokenizer_invalid' });
});

t.test('the number of batches in progress is bounded', async (t) => {
  let started = 0;
  const counted = async function* () {
    for (const batch of batches(30)) {
      started++;
      yield batch;
    }
  };
  const pool = new EncoderPool(SETUP, 2);
  let encoded = 0;
  for await (const _ of pool.encode(counted())) {
    encoded++;
    t.ok(started - encoded <= 4);
  }
  t.equal(encoded, 30);
  await pool.close();
});

t.test('an error of the batches is passed on, and the pool can be closed at any time', async (t) => {
  const failing = async function* () {
    yield* batches(2);
    throw new Error('gone');
  };
  await t.rejects(encode(failing(), 2), { message: 'gone' });
  const pool = new EncoderPool(SETUP, 1);
  const waiting = pool.encode(stream(batches(5))).next();
  await pool.close();
  await t.rejects(waiting, { code: 'shutting_down' });
});

t.test('a tokenizer with a backtracking regular expression ends with an error', async (t) => {
  const pattern = { Regex: '(a+)+b' };
  const preTokenizer = { type: 'Split', pattern, behavior: 'Isolated', invert: false };
  const endless = JSON.stringify({ ...tokenizer, normalizer: null, pre_tokenizer: preTokenizer });
  const setup = { ...SETUP, tokenizer: { ...FILES, tokenizer: endless } };
  const text = { bytes: Buffer.from(JSON.stringify({ text: 'a'.repeat(60) })), first_line: 1 };
  const pool = new EncoderPool(setup, 1, 300);
  t.teardown(() => pool.close());
  await t.rejects(pool.encode(stream([text])).next(), {
    code: 'tokenizer_invalid',
    message: /without finishing: a regular expression/,
  });
});
