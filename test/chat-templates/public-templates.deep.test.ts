// Renders chats by public templates and compares text and learned parts with transformers (render.py).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type JsonlChat, parseLine } from '../../contracts/jsonl/line.js';
import { ChatTemplate } from '../../formats/encoding/chat-template.js';
import { projectRoot } from '../../platform/process/root.js';
import { pythonWith, runPython } from '../support/python.js';

interface Family {
  /** Files in trl or llama.cpp. */
  names: readonly string[];
  /** An answer, behind the prompt for it, with the end of its turn. */
  answer: RegExp;
  /** Cases that the template does not have, with the reason. */
  without?: Readonly<Record<string, RegExp>>;
  /** Case: what the template leaves out. */
  missing?: Readonly<Record<string, string>>;
}

interface Rendered {
  text?: string;
  tagged?: string[];
  error?: string;
}
type Found = Record<
  string,
  { source: string; cases: Record<string, { public: Rendered; training: Rendered | null }> }
>;

const NO_TOOLS = { tools: /tools|fails/, 'tool round': /tools|fails/ };
const CHATML = /(?<=<\|im_start\|>assistant\n).*?<\|im_end\|>\n/gs;
const LLAMA = /(?<=<\|start_header_id\|>assistant<\|end_header_id\|>\n\n).*?<\|eot_id\|>/gs;
const FAMILIES: readonly Family[] = [
  { names: ['qwen3', 'Qwen-Qwen3-0.6B'], answer: CHATML },
  { names: ['qwen3_instruct_2507', 'qwen2_5', 'Qwen-Qwen2.5-7B-Instruct'], answer: CHATML },
  { names: ['llama3'], answer: LLAMA, without: NO_TOOLS },
  {
    names: [
      'llama3_1',
      'llama3_2',
      'meta-llama-Llama-3.1-8B-Instruct',
      'meta-llama-Llama-3.2-3B-Instruct',
      'meta-llama-Llama-3.3-70B-Instruct',
    ],
    answer: LLAMA,
  },
  {
    names: ['mistralai-Mistral-Nemo-Instruct-2407'],
    answer: /(?<=\[\/INST\]|\[\/TOOL_RESULTS\]).*?<\/s>/gs,
    missing: { system: 'system' },
  },
  {
    names: ['gemma', 'google-gemma-2-2b-it'],
    answer: /(?<=<start_of_turn>model\n).*?<end_of_turn>\n/gs,
    without: { ...NO_TOOLS, system: /System role not supported/ },
  },
  { names: ['gemma3'], answer: /(?<=<start_of_turn>model\n).*?<end_of_turn>\n/gs, without: NO_TOOLS },
  {
    names: ['phi3', 'phi3_5', 'microsoft-Phi-3.5-mini-instruct'],
    answer: /(?<=<\|assistant\|>\n).*?<\|end\|>\n(?:<\/s>$)?/gs,
    without: NO_TOOLS,
  },
  {
    names: ['gptoss', 'openai-gpt-oss-120b'],
    answer: /(?<=<\|start\|>assistant).*?(?=<\|start\|>(?:user|functions)|$)/gs,
  },
  { names: ['HuggingFaceTB-SmolLM3-3B'], answer: CHATML, without: NO_TOOLS },
];

/** transformers reads the clock. */
const DAY = /(?<=Today Date: |Current date: ).*/;

const directory = join(projectRoot(), 'test', 'chat-templates');
const cases: Record<string, object> = JSON.parse(readFileSync(join(directory, 'cases.json'), 'utf8'));
const found = pythonWith('transformers', 'jinja2');
const folder = process.env.ZEROFLEET_TEST_TEMPLATES;

t.test('public templates', { skip: 'missing' in found && found.missing }, async (t) => {
  if ('missing' in found) return;
  const names = FAMILIES.flatMap((family) => family.names);
  const args = [join(directory, 'cases.json'), folder ?? '', ...names];
  const rendered = runPython(found.python, join(directory, 'render.py'), args) as Found;
  for (const family of FAMILIES)
    for (const name of family.names) {
      const { source, cases } = rendered[name] ?? { source: '', cases: {} };
      const skip = source === '' && 'neither in the package trl nor in the folder ZEROFLEET_TEST_TEMPLATES';
      t.test(name, { skip }, async (t) => {
        for (const [what, expected] of Object.entries(cases)) compare(t, what, source, family, expected);
      });
    }
});

function compare(
  t: import('tap').Test,
  what: string,
  source: string,
  { answer, without = {}, missing = {} }: Family,
  expected: { public: Rendered; training: Rendered | null },
): void {
  const chat = parseLine(JSON.stringify(cases[what])) as JsonlChat;
  const template = new ChatTemplate(source, {
    tokens: { bos_token: '<s>', eos_token: '</s>' },
    date: '2026-11-29',
  });
  if (without[what]) {
    t.throws(() => template.render(chat), { code: 'chat_template_invalid', message: without[what] }, what);
    return;
  }
  const { text, learned, ...rest } = template.render(chat);
  // One template fails in transformers for a call without "content"; here it gets an empty one.
  const { text: theirs, error } = expected.public;
  if (error === undefined)
    t.equal(text, theirs?.replace(DAY, DAY.exec(text)?.[0] ?? ''), `${what}: the text`);
  const parts = learned.map(({ begin, end }) => text.slice(begin, end));
  t.same(parts, text.match(answer), `${what}: the learned parts`);
  if (missing[what]) t.same(rest.missing, [missing[what]], `${what}: what is missing`);
  const { training } = expected;
  if (!training || training.text !== expected.public.text) return;
  // trl also counts the rest of the header in some templates, and divides an answer in two in others.
  const tagged = training.tagged?.join('') ?? '';
  t.ok(tagged.endsWith(parts.at(-1) ?? '-'), `${what}: the end of the tagged parts`);
  t.equal(withoutHeaders(tagged), withoutHeaders(parts.join('')), `${what}: the tagged parts`);
}

function withoutHeaders(text: string): string {
  return text.replaceAll('<|start|>assistant', '').replace(/(?<=^|<\|im_end\|>\n)\n/g, '');
}
