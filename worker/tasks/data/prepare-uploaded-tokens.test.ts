// Tests uploaded tokens, from the stored dataset to the token files.
import t, { type Test } from 'tap';
import { encodeTokenFileHeader, tokenFileLayout } from '../../../contracts/token-file.js';
import { prepared, readTokenFile } from '../../testing/prepared.js';
import { prepareTokens } from './prepare-tokens.js';

const TOKENS_HEADER = {
  token_bytes: 4,
  num_tokens: 200,
  num_sequences: 0,
  num_documents: 2,
  sequence_length: 0,
} as const;

const prepare = async (t: Test, file: Buffer, changes: { vocab_size: number; sequence_length: number }) => {
  const { objects, request } = await prepared(t, {
    uploaded: file,
    dataset: { format: 'tokens', num_documents: 2 },
  });
  return prepareTokens(objects, { ...request, data: { ...request.data, tokenizer: null }, ...changes });
};

/** Returns a dataset of `format=tokens` with two documents. */
function tokensFile(token: (index: number) => number) {
  const layout = tokenFileLayout(TOKENS_HEADER);
  const file = Buffer.alloc(layout.end);
  file.set(encodeTokenFileHeader(TOKENS_HEADER));
  for (let index = 0; index < 200; index++) file.writeUInt32LE(token(index), layout.tokens + 4 * index);
  file.writeBigUInt64LE(90n, layout.documents + 8);
  file.fill(0xff, layout.mask, layout.mask + 25);
  file[layout.mask] = 0xf0;
  return file;
}

t.test('uploaded tokens are read unchanged', async (t) => {
  for (const [vocabSize, tokenBytes, last] of [
    [1000, 2, 199],
    [100_000, 4, 70_000],
  ] as const) {
    const file = tokensFile((index) => (index === 199 ? last : index));
    const { token_file } = await prepare(t, file, { vocab_size: vocabSize, sequence_length: 24 });
    const { header, tokens, documents, counts } = await readTokenFile(token_file);
    t.equal(header.token_bytes, tokenBytes);
    t.same(
      tokens,
      Array.from({ length: 200 }, (_, index) => (index === 199 ? last : index)),
    );
    t.same(documents, [0, 90]);
    t.same(counts, [0, 0, 0, 0, ...new Array<number>(196).fill(1)]);
  }
});

t.test('data without a target is refused; sequences without one are dropped and counted', async (t) => {
  const file = tokensFile((index) => index);
  const { mask } = tokenFileLayout(TOKENS_HEADER);
  const sizes = { vocab_size: 1000, sequence_length: 20 };
  file.fill(0, mask, mask + 25);
  await t.rejects(prepare(t, file, sizes), {
    code: 'no_targets',
    message: /^none of 10 sequences \(100 %\)/,
  });
  file[mask + 3] = 1; // token 24, in the second sequence
  t.match((await prepare(t, file, sizes)).summary, { targets: 1, sequences: 1, without_targets: 9 });
});
