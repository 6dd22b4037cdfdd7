import t from 'tap';
import { SampleTexts } from './sample-texts.js';

/** A template whose turns end with a text, which the bytes tokenizer reads as such. */
const TEMPLATE =
  '{% for message in messages %}[{{ message.role }}]{{ message.content }}<end>{% endfor %}' +
  '{% if add_generation_prompt %}[assistant]{% endif %}';

function textsOf(lines: readonly (object | string)[], chatTemplate: string | null = null): SampleTexts {
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');
  const bytes = Buffer.from(text);
  const content = new SharedArrayBuffer(bytes.length);
  new Uint8Array(content).set(bytes);
  const rules = {
    tokenizer: null,
    parse_special_tokens: false,
    chat_template: chatTemplate,
    template_date: null,
  };
  return new SampleTexts({ ...rules, content, prompt_tokens: 40 });
}

const bytesOf = (text: string) => [...Buffer.from(text)];

t.test('prompts of lines, with their fields', async (t) => {
  const texts = textsOf([{ prompt: 'a=', answer: 1 }, '', { prompt: 'b=', completion: 'c' }]);
  t.equal(texts.count, 2);
  t.match(texts.prompt(0), { line: 1, text: 'a=', tokens: bytesOf('a='), item: { prompt: 'a=', answer: 1 } });
  t.match(texts.prompt(1), { line: 3, text: 'b=', item: { completion: 'c' } });
});

t.test('a chat up to the last turn before an answer', async (t) => {
  const user = { role: 'user', content: 'a' };
  const texts = textsOf(
    [{ messages: [user], x: 1 }, { messages: [user, { role: 'assistant', content: 'b' }] }],
    TEMPLATE,
  );
  for (const index of [0, 1]) t.equal(texts.prompt(index).text, '[user]a<end>[assistant]');
  t.equal(texts.prompt(0).end_text, '<end>');
  t.same(texts.prompt(0).item.x, 1);
});

t.test('refusals name the line', async (t) => {
  const refused = (line: object, code: string, message: RegExp) =>
    t.throws(() => textsOf([{ prompt: 'a' }, line]).prompt(1), { code, message });
  refused({ text: 'a' }, 'dataset_line_invalid', /^line 2: it has a "text"/);
  refused({ prompt: 'a'.repeat(41) }, 'prompt_too_long', /^line 2: the prompt has 41 tokens/);
  refused({ messages: [{ role: 'user', content: 'a' }] }, 'dataset_line_invalid', /^line 2: .*chat_template/);
});

t.test('the text of a sample ends before its end', async (t) => {
  const texts = textsOf([{ prompt: 'a' }]);
  const read = (text: string, endText = '', finish: 'end' | 'length' = 'length') =>
    texts.sample({ prompt: [97], end_text: endText, tokens: bytesOf(text), finish });
  t.same(read('bcd'), { text: 'bcd', tokens: 3, truncated: true });
  t.same(read('bcd', '', 'end'), { text: 'bc', tokens: 3, truncated: false });
});

t.test('an end of text cuts the sample behind it', async (t) => {
  const texts = textsOf([{ prompt: 'a' }], TEMPLATE);
  const sample = { prompt: [97], end_text: '<end>', tokens: bytesOf('bc<end>de'), finish: 'length' as const };
  t.same(texts.sample(sample), { text: 'bc', tokens: 7, truncated: false });
});
