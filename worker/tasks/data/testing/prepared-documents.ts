/** A dataset of texts and chats, uploaded for the preparation of tokens. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { type Dataset, modelKey } from '../../../../contracts/index.js';
import { projectRoot } from '../../../../platform/process/root.js';
import { prepared, readTokenFile } from '../../../testing/prepared.js';

export const MODEL = 'mdl_01J00000000000000000000000';
export const { tokenizers, templates } = JSON.parse(
  readFileSync(join(projectRoot(), 'worker', 'tasks', 'data', 'golden', 'chats.json'), 'utf8'),
);
export const FILES = {
  tokenizer: JSON.stringify(tokenizers[0].tokenizer),
  config: JSON.stringify(tokenizers[0].config),
  special_tokens_map: null,
};
const VOCAB_SIZE = 1000;

/** Texts and chats, some of them longer than a sequence of 24. */
export const DOCUMENTS: object[] = Array.from({ length: 600 }, (_, index) =>
  index % 3 === 0
    ? { text: `Text number ${index}. ${'Grüße, 世界! '.repeat(index % 7)}` }
    : {
        messages: [
          { role: 'user', content: `What is ${index}?` },
          { role: 'assistant', content: `It is ${index * index}.${' And more.'.repeat(index % 11)}` },
        ],
      },
);
export const LINES = Buffer.from(`${DOCUMENTS.map((document) => JSON.stringify(document)).join('\n')}\n`);
export const JSONL: Partial<Dataset> = {
  format: 'jsonl',
  num_documents: DOCUMENTS.length,
  num_chats: 400,
  num_tokens: null,
};

export async function setup(t: Test, uploaded: Uint8Array, dataset: Partial<Dataset>) {
  const { objects, request } = await prepared(t, { uploaded, dataset });
  await objects.put(`${modelKey(MODEL)}/tokenizer.json`, Buffer.from(FILES.tokenizer));
  await objects.put(`${modelKey(MODEL)}/tokenizer_config.json`, Buffer.from(FILES.config));
  Object.assign(request, { sequence_length: 24, vocab_size: VOCAB_SIZE });
  Object.assign(request.data, { tokenizer: MODEL });
  return { objects, request };
}

/** Reads the documents of a token file. */
export async function documentsOf(path: string) {
  const { tokens, documents, counts } = await readTokenFile(path);
  return documents.map((begin, index) => ({
    tokens: tokens.slice(begin, documents[index + 1]),
    counts: counts.slice(begin, documents[index + 1]),
  }));
}
