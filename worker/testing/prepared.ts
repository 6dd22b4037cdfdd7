/** Datasets to prepare, and readers of the resulting token files. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Test } from 'tap';
import type { Dataset } from '../../contracts/index.js';
import { datasetKey } from '../../contracts/object-keys.js';
import { decodeTokenFileHeader, tokenFileLayout } from '../../contracts/token-file.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import type { TokenRequest } from '../tasks/data/prepare-tokens.js';

interface PreparedOptions {
  uploaded: Uint8Array;
  /** Bytes in the store; by default all of `uploaded`. */
  stored?: Uint8Array;
  dataset?: Partial<Dataset>;
}

/** Creates an object store with one dataset, and the request for it: a text in bytes, in sequences of 100. */
export async function prepared(t: Test, { uploaded, stored = uploaded, dataset = {} }: PreparedOptions) {
  const dir = t.testdir();
  const objects = await openObjectStore(pathToFileURL(join(dir, 'objects')).href, { create: true });
  t.teardown(() => objects.close());
  const id = 'ds_01J00000000000000000000000';
  const request: TokenRequest = {
    dataset: {
      id,
      name: 'n',
      description: '',
      format: 'text',
      bytes: uploaded.length,
      digest: `sha256:${createHash('sha256').update(uploaded).digest('hex')}`,
      num_documents: 1,
      source: null,
      num_chats: 0,
      num_preferences: 0,
      num_labelled: 0,
      num_prompts: 0,
      num_tokens: uploaded.length,
      max_token: null,
      project: 'default',
      created_at: '',
      ...dataset,
    },
    object_key: datasetKey(id),
    unit: null,
    data: {
      dataset: id,
      tokenizer: 'bytes',
      chat_template: null,
      parse_special_tokens: false,
      template_date: null,
      packing: 'split',
      validation_fraction: 0,
      seed: 1,
    },
    sequence_length: 100,
    vocab_size: 256,
    cache_dir: join(dir, 'cache'),
    cache_bytes: Number.POSITIVE_INFINITY,
    num_threads: 1,
    attempt: 'attempt',
  };
  await objects.put(request.object_key, stored);
  return { objects, request };
}

/** Reads the tables of a token file. @throws Error when its size does not match its header */
export async function readTokenFile(path: string) {
  const bytes = await readFile(path);
  const header = decodeTokenFileHeader(bytes);
  if (!header) throw new Error(`${path} is no token file`);
  const layout = tokenFileLayout(header);
  if (layout.end !== bytes.length) throw new Error(`${path} has ${bytes.length} bytes, not ${layout.end}`);
  const positions = (begin: number, end: number) =>
    Array.from({ length: (end - begin) / 8 }, (_, i) => Number(bytes.readBigUInt64LE(begin + 8 * i)));
  const bits = (position: number) => ((bytes[layout.mask + (position >> 3)] ?? 0) >> (position & 7)) & 1;
  const { num_tokens, token_bytes } = header;
  return {
    header,
    tokens: Array.from({ length: num_tokens }, (_, i) =>
      bytes.readUIntLE(layout.tokens + token_bytes * i, token_bytes),
    ),
    sequences: positions(layout.sequences, layout.documents),
    documents: positions(layout.documents, layout.mask),
    counts: Array.from({ length: num_tokens }, (_, position) => bits(position)),
  };
}

/** Reads the sequences of a token file in which each is a document of its own. */
export async function readSequences(path: string) {
  const { tokens, counts, sequences, documents } = await readTokenFile(path);
  if (JSON.stringify(sequences) !== JSON.stringify(documents)) throw new Error(`${path} has other documents`);
  return sequences.map((begin, i) => ({
    tokens: tokens.slice(begin, sequences[i + 1]),
    counts: counts.slice(begin, sequences[i + 1]),
  }));
}
