// Compares prompts with completions with those of TRL (golden/make_golden_completions.py).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parseLine } from '../../../contracts/jsonl/line.js';
import { type EncoderSetup, makeEncoder } from '../../../formats/encoding/encode-batch.js';
import { projectRoot } from '../../../platform/process/root.js';
import { prepared, readTokenFile } from '../../testing/prepared.js';
import { prepareTokens } from './prepare-tokens.js';

interface Golden {
  templates: Record<string, string>;
  lines: Record<string, object[]>;
  results: {
    tokenizer: string;
    template: string;
    case: string;
    documents: { ids: number[]; learned: number[] }[];
  }[];
}

const read = (name: string) =>
  JSON.parse(readFileSync(join(projectRoot(), 'worker', 'tasks', 'data', 'golden', name), 'utf8'));
const golden: Golden = read('completions.json');
const tokenizers: { name: string; tokenizer: object; config: object }[] = read('chats.json').tokenizers;

const SETUP: EncoderSetup = {
  tokenizer: null,
  parse_special_tokens: false,
  chat_template: null,
  template_date: null,
  unit: null,
};

for (const { tokenizer: name, template, case: kind, documents } of golden.results) {
  t.test(`${name}, ${template}, ${kind}: as in TRL`, async (t) => {
    const { tokenizer, config } = tokenizers.find((each) => each.name === name)!;
    const encoder = makeEncoder({
      ...SETUP,
      tokenizer: {
        tokenizer: JSON.stringify(tokenizer),
        config: JSON.stringify(config),
        special_tokens_map: null,
      },
      chat_template: golden.templates[template]!,
    });
    const made = golden.lines[kind]!.flatMap((line) => encoder.encode(parseLine(JSON.stringify(line))));
    // The first token of a document is no target.
    t.same(
      made.map(({ tokens, counts }) => ({ ids: [...tokens], learned: [...counts!].slice(1) })),
      documents.map(({ ids, learned }) => ({ ids, learned: learned.slice(1) })),
    );
    t.same(
      made.map(({ flaws }) => flaws),
      documents.map(() => []),
    );
  });
}

t.test('a dataset of prompts with completions beside texts', async (t) => {
  const lines = [{ prompt: 'ab', completion: 'cde' }, { text: 'fg' }, { prompt: '', completion: 'h' }];
  const uploaded = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const { objects, request } = await prepared(t, {
    uploaded,
    dataset: { format: 'jsonl', num_tokens: null, num_documents: lines.length },
  });
  const { token_file, summary } = await prepareTokens(objects, { ...request, sequence_length: 4 });
  const { tokens, counts } = await readTokenFile(token_file);
  t.equal(Buffer.from(tokens.slice(0, 8)).toString(), 'abcdefgh');
  t.same(counts.slice(0, 8), [0, 0, 1, 1, 1, 1, 1, 1]);
  t.match(summary, { documents: 3, targets: 4 });
});
