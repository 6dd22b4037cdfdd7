import t, { type Test } from 'tap';
import { HfTokenizer } from '../../../formats/encoding/hf-tokenizer.js';
import { TINY_TOKENIZER } from '../../../formats/testing/models.js';
import { TokenDecoder } from '../../../formats/tokenizer/token-decoder.js';
import type { PromptSetup } from './prompt.js';
import { PromptThreads } from './prompt-threads.js';

const SETUP: PromptSetup = {
  tokenizer: null,
  parse_special_tokens: false,
  chat_template: null,
  template_date: null,
  max_length: 100,
};
const MESSAGES = [{ role: 'user' as const, content: `${'a'.repeat(60)}!` }];

function threadsOf(t: Test, setup: Partial<PromptSetup>, promptMs?: number) {
  const threads = new PromptThreads({ ...SETUP, ...setup }, promptMs);
  t.teardown(() => threads.close());
  return threads;
}

const none = new AbortController().signal;

t.test('a prompt is made in a thread', async (t) => {
  const threads = threadsOf(t, { chat_template: '{% for m in messages %}[{{ m.content }}]{% endfor %}' });
  const prompt = await threads.build({ messages: MESSAGES }, none);
  t.equal(Buffer.from(prompt.tokens).toString(), prompt.text);
  await t.rejects(threads.build({ prompt: '' }, none), { code: 'tokenizer_invalid' });
  await t.rejects(threads.build({ prompt: 'x'.repeat(100) }, none), { code: 'prompt_too_long' });
  await t.rejects(
    threads.build({ prompt: 'x' }, AbortSignal.abort(new Error('nobody waits'))),
    /nobody waits/,
  );
});

t.test(
  'a template that loops, and a regular expression that backtracks, fail their prompt alone',
  async (t) => {
    const loop = '{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}';
    const looping = threadsOf(t, { chat_template: loop }, 200);
    const failing = looping.build({ messages: MESSAGES }, none);
    const next = looping.build({ prompt: 'to' }, none);
    await t.rejects(failing, { code: 'content_too_complex', message: /more than 0.2 s for this prompt/ });
    t.strictSame((await next).tokens, [116, 111]);
    const preTokenizer = {
      type: 'Split',
      pattern: { Regex: '(a+)+b' },
      behavior: 'Isolated',
      invert: false,
    };
    const tokenizer = JSON.stringify({ ...TINY_TOKENIZER, pre_tokenizer: preTokenizer });
    const files = { tokenizer, config: null, special_tokens_map: null };
    const backtracking = threadsOf(t, { tokenizer: files }, 200);
    await t.rejects(backtracking.build({ prompt: 'a'.repeat(60) }, none), { code: 'content_too_complex' });
  },
);

t.test('the tokenizer is read in the thread, and answers are decoded by its table', async (t) => {
  const files = (parts: object) => {
    const tokenizer = JSON.stringify({ ...TINY_TOKENIZER, ...parts });
    return { tokenizer: { tokenizer, config: null, special_tokens_map: null } };
  };
  const own = new HfTokenizer(files({}).tokenizer, false);
  const { vocab_size, table } = await threadsOf(t, files({})).decoding();
  t.equal(vocab_size, own.vocabSize);
  const tokens = own.encodePrompt('to be or not');
  t.equal(table && new TokenDecoder(table).decodeAfter([], tokens), own.decodeAfter([], tokens));
  t.same(await threadsOf(t, {}).decoding(), { vocab_size: 256, table: null });
  // An added token is normalized when the file is read.
  const slow = files({
    normalizer: { type: 'Replace', pattern: { Regex: '(a+)+b' }, content: '' },
    added_tokens: [{ id: 26, content: 'a'.repeat(60), special: false, normalized: true }],
  });
  await t.rejects(threadsOf(t, slow, 200).decoding(), { code: 'content_too_complex' });
});
