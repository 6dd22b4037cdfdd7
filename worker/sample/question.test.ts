import t from 'tap';
import { BytesTokenizer } from '../encoding/bytes-tokenizer.js';
import type { PromptTokenizer } from '../encoding/prompt-tokenizer.js';
import { questionOf } from './question.js';

const TEMPLATE =
  '{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eot }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}';
const NO_CHATS = { chat_template: null, template_date: null };
const MESSAGES = [{ role: 'user', content: 'Why?' }];

t.test('a prompt begins a document', async (t) => {
  const question = questionOf(new BytesTokenizer(), { prompt: 'to' }, NO_CHATS);
  t.strictSame(question, { text: 'to', tokens: [116, 111], end_token: null, end_text: '' });
  t.throws(() => questionOf(new BytesTokenizer(), { prompt: '' }, NO_CHATS), { code: 'tokenizer_invalid' });
});

t.test('messages become a text by the template; the text behind an answer ends it', async (t) => {
  const chat_template = `{{ strftime_now('%F') }} ${TEMPLATE.replace('{{ eot }}', '\n---\n')}`;
  const data = { chat_template, template_date: '2024-02-29' };
  const { text, tokens, ...ends } = questionOf(new BytesTokenizer(), { messages: MESSAGES }, data);
  t.equal(text, '2024-02-29 [user]Why?\n---\n[assistant]');
  t.equal(Buffer.from(tokens).toString(), text);
  t.strictSame(ends, { end_token: null, end_text: '---' });
});

t.test('a special token behind an answer ends it, whatever ends a document', async (t) => {
  /** Bytes, but for one special token of its own. */
  const special: PromptTokenizer = {
    vocab_size: 258,
    end: 256,
    variables: { bos_token: '<s>', eot: '<end>' },
    special_texts: /<end>/gu,
    encodePrompt: () => [],
    encodeChat: ({ text }) =>
      text.split(/(<end>)/).flatMap((part) => (part === '<end>' ? [257] : [...Buffer.from(part)])),
    decodeAfter: (_, tokens) => Buffer.from(tokens.filter((id) => id < 256)).toString(),
  };
  const question = questionOf(special, { messages: MESSAGES }, { ...NO_CHATS, chat_template: TEMPLATE });
  t.match(question, { text: '<s>[user]Why?<end>[assistant]', end_token: 257 });
  t.equal(question.tokens.at(-12), 257);
});
