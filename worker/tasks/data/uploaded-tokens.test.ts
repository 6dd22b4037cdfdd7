import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  encodeTokenFileHeader,
  type TokenFileHeader,
  tokenFileLayout,
} from '../../../contracts/token-file.js';
import { uploadedTokens } from './uploaded-tokens.js';

interface Content {
  tokens: number[];
  documents: number[];
  /** True for tokens that count as targets. */
  counts: (index: number) => boolean;
}

function tokenFile(
  { tokens, documents, counts }: Content,
  tokenBytes: 2 | 4,
  changes: Partial<TokenFileHeader> = {},
): Buffer {
  const header = {
    token_bytes: tokenBytes,
    num_tokens: tokens.length,
    num_sequences: 0,
    num_documents: documents.length,
    sequence_length: 0,
  };
  const layout = tokenFileLayout(header);
  const file = Buffer.alloc(layout.end);
  file.set(encodeTokenFileHeader({ ...header, ...changes }));
  for (const [index, token] of tokens.entries()) {
    file.writeUIntLE(token, layout.tokens + index * tokenBytes, tokenBytes);
    if (counts(index)) file[layout.mask + (index >> 3)]! |= 1 << (index & 7);
  }
  for (const [index, start] of documents.entries())
    file.writeBigUInt64LE(BigInt(start), layout.documents + 8 * index);
  return file;
}

async function read(t: Test, file: Buffer) {
  const scratch = join(t.testdir(), 'scratch');
  const chunks = async function* () {
    for (let at = 0; at < file.length; at += 1000) yield file.subarray(at, at + 1000);
  };
  const documents: { tokens: number[]; counts: number[] }[] = [];
  try {
    for await (const { tokens, counts, starts } of uploadedTokens(chunks(), scratch)) {
      if (starts) documents.push({ tokens: [], counts: [] });
      documents.at(-1)!.tokens.push(...tokens);
      documents.at(-1)!.counts.push(...counts!);
    }
  } finally {
    t.notOk(existsSync(scratch), 'the file is removed afterwards');
  }
  return documents;
}

/** Several blocks, with a document across a block border and one that begins there. */
const BLOCK = 1 << 16;
const LARGE: Content = {
  tokens: Array.from({ length: 2 * BLOCK + 13 }, (_, index) => (index * 7919) % 60_000),
  documents: [0, 1, 5, 2 * BLOCK, 2 * BLOCK + 12],
  counts: (index) => index % 3 !== 0,
};

for (const tokenBytes of [2, 4] as const)
  t.test(`documents, tokens and mask of ${tokenBytes} bytes a token`, async (t) => {
    const { tokens, documents, counts } = LARGE;
    const expected = documents.map((begin, index) => {
      const end = documents[index + 1] ?? tokens.length;
      const mine = tokens.slice(begin, end);
      return { tokens: mine, counts: mine.map((_, i) => (counts(begin + i) ? 1 : 0)) };
    });
    t.same(await read(t, tokenFile(LARGE, tokenBytes)), expected);
  });

t.test('invalid token files are refused', async (t) => {
  const small: Content = { tokens: [1, 2, 3], documents: [0, 2], counts: () => true };
  const whole = tokenFile(small, 2);
  for (const [file, message] of [
    [Buffer.alloc(0), /header/],
    [Buffer.from('text '.repeat(20)), /header/],
    [whole.subarray(0, -1), /size/],
    [Buffer.concat([whole, Buffer.alloc(8)]), /size/],
    [tokenFile(small, 2, { num_tokens: 2 ** 52 }), /size/],
    [tokenFile({ ...small, documents: [] }, 2), /first document/],
    [tokenFile({ ...small, documents: [1, 2] }, 2), /first document/],
    [tokenFile({ ...small, documents: [0, 2, 2] }, 2), /ascend/],
    [tokenFile({ ...small, documents: [0, 3] }, 2), /behind its last token/],
  ] as const)
    await t.rejects(read(t, file), { code: 'dataset_tokens_invalid', message });
});
