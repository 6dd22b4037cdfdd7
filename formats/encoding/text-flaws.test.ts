import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parseLine } from '../../contracts/jsonl/line.js';
import type { Unit } from '../../job-document/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { makeEncoder } from './encode-batch.js';

const { tokenizers } = JSON.parse(
  readFileSync(join(projectRoot(), 'worker', 'tasks', 'data', 'golden', 'chats.json'), 'utf8'),
);
/** The first ends sequences with <|im_end|>; the second with </s>, and begins them with <s>. Both have <|im_end|>. */
const [CHATML, LLAMA] = tokenizers.map(({ tokenizer, config }: { tokenizer: object; config: object }) => ({
  tokenizer: JSON.stringify(tokenizer),
  config: JSON.stringify(config),
  special_tokens_map: null,
}));

function flawsOf(line: object, chatTemplate: string | null, tokenizer = CHATML, unit: Unit | null = null) {
  const setup = {
    tokenizer,
    parse_special_tokens: true,
    chat_template: chatTemplate,
    template_date: null,
    unit,
  };
  return makeEncoder(setup)
    .encode(parseLine(JSON.stringify(line)))
    .map(({ flaws }) => flaws);
}

const turns = (answer: string) =>
  `{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}${answer}{% else %}{{ m.content }}<|im_end|>{% endif %}\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}`;
const INSIDE = turns('{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}');
const BEHIND = turns('{% generation %}{{ m.content }}{% endgeneration %}<|im_end|>');
const PLAIN = turns('{% generation %}{{ m.content }}[end]{% endgeneration %}');

const USER = { role: 'user', content: 'a' };
const ANSWER = { role: 'assistant', content: 'b' };
const CHAT = { messages: [USER, ANSWER] };

t.test('a chat without a learned token that ends answers', async (t) => {
  const without = (...given: Parameters<typeof flawsOf>) =>
    flawsOf(...given).map((flaws) => flaws?.includes('no_stop_token'));
  t.same(without(CHAT, INSIDE), [false]);
  t.same(without(CHAT, BEHIND), [true], 'the mark ends before it');
  t.same(without(CHAT, PLAIN), [true], 'a text ends the turn');
  t.same(without(CHAT, INSIDE, LLAMA), [false], "the template's own end is not that of documents");
  t.same(without(CHAT, PLAIN.replace('[end]', '</s>'), LLAMA), [false]);
  t.same(without(CHAT, BEHIND, null), [false], 'bytes have no such tokens');
  t.same(without({ text: 'a' }, null), [false], 'a text is no answer');
});

t.test('completions are answers', async (t) => {
  const pair = { prompt: [USER], chosen: [ANSWER], rejected: [ANSWER] };
  const without = (template: string) =>
    flawsOf(pair, template, CHATML, 'pair').map((flaws) => flaws?.includes('no_stop_token'));
  t.same(without(BEHIND), [false, false], 'generation tags have no effect');
  t.same(without(PLAIN), [true, true]);
  const texts = { prompt: 'a', completion: 'b', label: true };
  t.same(flawsOf(texts, null, CHATML, 'labelled'), [[]]);
  t.same(flawsOf({ prompt: 'a', completion: 'b' }, null), [[]]);
  t.same(flawsOf({ prompt: '<s>a', completion: 'b' }, null, LLAMA), [['repeated_begin']]);
  t.same(flawsOf({ prompt: [USER], completion: [ANSWER] }, BEHIND), [['no_stop_token']]);
});

t.test('a text that begins with the token that the tokenizer puts before it', async (t) => {
  const two = (...given: Parameters<typeof flawsOf>) =>
    flawsOf(...given).map((flaws) => flaws?.includes('repeated_begin'));
  t.same(two({ text: '<s>Hello</s>' }, null, LLAMA), [true]);
  t.same(two({ text: 'Hello <s>' }, null, LLAMA), [false]);
  t.same(
    two({ text: '<|endoftext|>Hello' }, null, CHATML),
    [false],
    'this tokenizer puts nothing before texts',
  );
  t.same(two(CHAT, `<s>${INSIDE}`, LLAMA), [false], 'nothing is put before a chat');
  t.same(two(CHAT, `{{ bos_token }}<s>${INSIDE}`, LLAMA), [true], 'the template writes it twice');
  t.same(two({ prompt: '<s>a', completion: 'b', label: false }, null, LLAMA, 'labelled'), [true]);
});

t.test('a chat of which nothing is learned', async (t) => {
  const silent = turns('{% generation %}{% endgeneration %}{{ m.content }}<|im_end|>');
  t.same(flawsOf(CHAT, silent), [['nothing_learned']]);
});

t.test('a template without the role of the system, or without reasoning', async (t) => {
  const users = INSIDE.replace('in messages', "in messages if m.role != 'system'");
  const system = { role: 'system', content: 'c' };
  t.same(flawsOf({ messages: [system, ...CHAT.messages] }, users), [['system_not_rendered']]);
  const reasoned = (answer: object) => flawsOf({ messages: [USER, { ...ANSWER, ...answer }] }, INSIDE);
  for (const field of ['reasoning_content', 'reasoning', 'thinking'])
    t.same(reasoned({ [field]: 'd' }), [['reasoning_not_rendered']]);
  t.same(reasoned({ content: '<think>d</think>b' }), [[]]);
});
