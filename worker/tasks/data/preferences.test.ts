// Compares prepared preferences with those of TRL (golden/make_golden_preferences.py).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { modelKey } from '../../../contracts/index.js';
import { ChatTemplate } from '../../../formats/encoding/chat-template.js';
import { DocumentEncoder } from '../../../formats/encoding/document-encoder.js';
import { HfTokenizer } from '../../../formats/encoding/hf-tokenizer.js';
import type { Unit } from '../../../job-document/index.js';
import { projectRoot } from '../../../platform/process/root.js';
import { prepared, readSequences } from '../../testing/prepared.js';
import { prepareTokens } from './prepare-tokens.js';

interface Sequence {
  ids: number[];
  mask: number[];
  label?: boolean;
}
interface Golden {
  templates: Record<string, string>;
  lines: Record<string, Record<string, unknown>[]>;
  results: { tokenizer: string; template: string; case: string; max_length: number; units: Sequence[][] }[];
}

const MODEL = 'mdl_01J00000000000000000000000';
const read = (name: string) =>
  JSON.parse(readFileSync(join(projectRoot(), 'worker', 'tasks', 'data', 'golden', name), 'utf8'));
const golden: Golden = read('preferences.json');
const tokenizers: { name: string; tokenizer: object; config: object }[] = read('chats.json').tokenizers;

/** Prepares the lines of a case as a dataset. */
async function prepareCase(
  t: Test,
  { tokenizer: name, template, case: kind, max_length }: Golden['results'][0],
) {
  const lines = golden.lines[kind] as Record<string, unknown>[];
  const isLabelled = kind.startsWith('labelled');
  const uploaded = Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n'));
  const counts = {
    num_documents: lines.length,
    num_preferences: isLabelled ? 0 : lines.length,
    num_labelled: isLabelled ? lines.length : 0,
    num_chats: kind.includes('messages') ? lines.length : 0,
  };
  const { objects, request } = await prepared(t, {
    uploaded,
    dataset: { format: 'jsonl', num_tokens: null, ...counts },
  });
  const { tokenizer, config } = tokenizers.find((each) => each.name === name)!;
  await objects.put(`${modelKey(MODEL)}/tokenizer.json`, Buffer.from(JSON.stringify(tokenizer)));
  await objects.put(`${modelKey(MODEL)}/tokenizer_config.json`, Buffer.from(JSON.stringify(config)));
  const unit: Unit = isLabelled || kind.startsWith('unpaired') ? 'labelled' : 'pair';
  const chatTemplate = golden.templates[template] as string;
  const data = { ...request.data, tokenizer: MODEL, chat_template: chatTemplate, parse_special_tokens: true };
  return prepareTokens(objects, {
    ...request,
    data,
    unit,
    sequence_length: max_length - 1,
    vocab_size: 1000,
  });
}

const sorted = (sequences: object[]) => sequences.map((each) => JSON.stringify(each)).sort();

for (const result of golden.results) {
  const { tokenizer, template, case: kind, max_length, units } = result;
  t.test(`${tokenizer}, ${template}, ${kind}, at most ${max_length} tokens: as in TRL`, async (t) => {
    const { token_file, summary } = await prepareCase(t, result);
    const made = await readSequences(token_file);
    // The first token is no target: it has the label.
    const expected = units.flat().map(({ ids, mask: [, ...mask], label = false }) => ({
      tokens: ids,
      counts: [Number(label), ...mask],
    }));
    // TRL puts the rejected completions of unpaired data behind the chosen ones.
    if (kind.startsWith('unpaired')) t.same(sorted(made), sorted(expected));
    else t.same(made, expected);
    t.match(summary, {
      sequences: expected.length,
      targets: expected.reduce((sum, { counts: [, ...rest] }) => sum + rest.filter(Boolean).length, 0),
      without_targets: summary.documents - expected.length,
    });
  });
}

t.test('a token that crosses the border of prompt and completion belongs to the completion', async (t) => {
  for (const { tokenizer, config } of tokenizers) {
    const files = {
      tokenizer: JSON.stringify(tokenizer),
      config: JSON.stringify(config),
      special_tokens_map: null,
    };
    const hf = new HfTokenizer(files, false);
    const whole = [...hf.encodeDocument('The quick brown fox jumps')];
    for (const length of [6, 14, 25]) {
      const text = 'The quick brown fox jumps';
      const { tokens, counts } = hf.encodeCompletion(text, length);
      t.same([...tokens], whole, 'the tokens are those of the whole text');
      const first = counts.indexOf(1);
      t.notOk(counts.subarray(first).includes(0), 'the completion is the end of the text');
      const before = hf.decodeAfter([], whole.slice(0, first)).replace(/^ /, '');
      t.ok(text.slice(0, length).startsWith(before), before);
      const until = hf.decodeAfter([], whole.slice(0, first + 1)).replace(/^ /, '');
      t.ok(first === whole.length - 1 || until.length > length, until);
    }
  }
});

t.test(
  'special tokens in a text are characters, and the document ends with the token of its end',
  async (t) => {
    const { tokenizer, config } = tokenizers[0]!;
    const files = {
      tokenizer: JSON.stringify(tokenizer),
      config: JSON.stringify(config),
      special_tokens_map: null,
    };
    const [plain, parsed] = [new HfTokenizer(files, false), new HfTokenizer(files, true)];
    const end = plain.encodeDocument('').at(-1);
    const { tokens, counts } = plain.encodeCompletion('a<|im_end|>b<|im_end|>', 11);
    t.equal(tokens.filter((token) => token === end).length, 1);
    t.equal(tokens.at(-1), end);
    t.equal(counts.at(-1), 1);
    const both = parsed.encodeCompletion('a<|im_end|>b<|im_end|>', 11).tokens;
    t.equal(both.filter((token) => token === end).length, 2, 'an end that the text has is not repeated');
  },
);

const UNTAGGED = golden.templates.chatml as string;
const PROMPT = { messages: [{ role: 'user', content: 'a' }], tools: null };
const ANSWER = [{ role: 'assistant', content: 'b' }];

t.test('a completion is what it adds to its prompt; generation tags have no effect', async (t) => {
  const { text, begin } = new ChatTemplate(UNTAGGED).renderCompletion(PROMPT, ANSWER);
  t.equal(text.slice(begin), 'b<|im_end|>\n');
  const tagged =
    '{% for m in messages %}[{{ m.role }}]{% if m.role == "assistant" %}{% generation %}{{ m.content }}{% endgeneration %}!{% else %}{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}';
  const rendered = new ChatTemplate(tagged).renderCompletion(PROMPT, ANSWER);
  t.match(rendered, { text: '[user]a[assistant]b!', begin: 18 });
});

t.test('a template that does not determine the completion, or ignores tools, is refused', async (t) => {
  const loop = '{{ messages | length }}{% for m in messages %}{{ m.content }}{% endfor %}';
  t.match(new ChatTemplate(loop).renderCompletion(PROMPT, ANSWER), { text: '2ab', begin: 2 });
  const changing = '{{ messages | length }}{{ messages[0].content }}{{ messages[1].content }}';
  t.throws(() => new ChatTemplate(changing).renderCompletion(PROMPT, ANSWER), {
    code: 'chat_template_invalid',
    message: /no loop over messages writes that message/,
  });
  t.throws(() => new ChatTemplate(UNTAGGED).renderCompletion({ ...PROMPT, tools: [{}] }, ANSWER), {
    code: 'chat_template_invalid',
    message: /does not render the tools/,
  });
});

t.test('an encoder reads only the documents of its unit', async (t) => {
  const hf = new HfTokenizer(
    {
      tokenizer: JSON.stringify(tokenizers[0]!.tokenizer),
      config: JSON.stringify(tokenizers[0]!.config),
      special_tokens_map: null,
    },
    false,
  );
  const pair = { prompt: 'a', chosen: 'b', rejected: 'c', tools: null };
  const labelled = { prompt: 'a', completion: 'b', label: true, tools: null };
  const encode = (unit: Unit | null, document: typeof pair | typeof labelled | { text: string }) =>
    new DocumentEncoder(hf, null, unit).encode(document).map(({ counts }) => counts?.[0]);
  t.same(encode('pair', pair), [0, 0]);
  t.same(encode('labelled', pair), [1, 0]);
  t.same(encode('labelled', labelled), [1]);
  for (const [unit, document] of [
    [null, pair],
    [null, labelled],
    ['pair', labelled],
    ['pair', { text: 'a' }],
    ['labelled', { text: 'a' }],
  ] as const)
    t.throws(() => encode(unit, document), /another kind/);
});
