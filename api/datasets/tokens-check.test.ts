import fc from 'fast-check';
import t from 'tap';
import {
  encodeTokenFileHeader,
  TOKEN_FILE_HEADER_BYTES,
  type TokenFileHeader,
  tokenFileLayout,
} from '../../contracts/token-file.js';
import { TokensCheck } from './tokens-check.js';

interface Tables {
  token_bytes?: 2 | 4;
  tokens?: number[];
  documents?: number[];
  /** Header values at their positions. */
  header?: Partial<TokenFileHeader>;
}

function tokenFile({ token_bytes = 2, tokens = [5, 9, 300, 7, 1], documents = [0, 3], header = {} }: Tables) {
  const honest: TokenFileHeader = {
    token_bytes,
    num_tokens: tokens.length,
    num_sequences: 0,
    num_documents: documents.length,
    sequence_length: 0,
  };
  const layout = tokenFileLayout(honest);
  const file = Buffer.alloc(layout.end);
  file.set(encodeTokenFileHeader({ ...honest, ...header }));
  for (const [i, token] of tokens.entries())
    file.writeUIntLE(token, layout.tokens + i * token_bytes, token_bytes);
  for (const [i, start] of documents.entries())
    file.writeBigUInt64LE(BigInt(start), layout.documents + 8 * i);
  file.fill(0xff, layout.mask, layout.mask + Math.ceil(tokens.length / 8));
  return file;
}

function check(bytes: Uint8Array, cuts: readonly number[] = []) {
  const borders = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  const tokens = new TokensCheck();
  for (let index = 1; index < borders.length; index += 1) {
    const piece = Uint8Array.from(bytes.subarray(borders[index - 1], borders[index]));
    tokens.push(piece);
    piece.fill(0xff);
  }
  return tokens.end();
}

t.test('tokens are counted independently of chunk borders', async (t) => {
  const list = fc.array(fc.nat(65_535), { minLength: 1, maxLength: 40 });
  const width = fc.constantFrom(2 as const, 4 as const);
  fc.assert(
    fc.property(list, width, fc.array(fc.nat()), (tokens, tokenBytes, cuts) => {
      const documents = tokens.flatMap((token, position) =>
        position === 0 || token % 3 === 0 ? [position] : [],
      );
      t.same(check(tokenFile({ tokens, token_bytes: tokenBytes, documents }), cuts), {
        num_documents: documents.length,
        num_chats: 0,
        num_preferences: 0,
        num_labelled: 0,
        num_prompts: 0,
        num_tokens: tokens.length,
        max_token: Math.max(...tokens),
      });
    }),
  );
});

t.test("four-byte tokens may have the native core's maximum", async (t) => {
  const largest = 2 ** 31 - 1;
  t.equal(check(tokenFile({ token_bytes: 4, tokens: [0, largest], documents: [0] })).max_token, largest);
});

const good = tokenFile({});
const changed = (change: (file: Buffer) => void) => {
  const file = Buffer.from(good);
  change(file);
  return file;
};

const REFUSED: [string, Uint8Array, RegExp][] = [
  [
    'a text',
    Buffer.from('to be or not to be, that is the question. '.repeat(3)),
    /does not begin with a token file header/,
  ],
  ['another version', changed((file) => file.writeUInt32LE(2, 8)), /does not begin with a token file header/],
  [
    'tokens of three bytes',
    changed((file) => file.writeUInt32LE(3, 12)),
    /does not begin with a token file header/,
  ],
  [
    'a header that is cut',
    good.subarray(0, TOKEN_FILE_HEADER_BYTES - 1),
    /47 bytes, and a header alone has 48/,
  ],
  ['only a header', good.subarray(0, TOKEN_FILE_HEADER_BYTES), /ends after 48 bytes; its header requires 88/],
  ['tokens that are cut', good.subarray(0, 51), /ends after 51 bytes/],
  ['documents that are cut', good.subarray(0, 70), /ends after 70 bytes/],
  ['a mask that is cut', good.subarray(0, good.length - 1), /ends after 87 bytes/],
  [
    'more data than the header declares',
    Buffer.concat([good, Buffer.alloc(8)]),
    /continues after the 88 bytes/,
  ],
  ['one extra byte', Buffer.concat([good, Buffer.alloc(1)]), /ends after 89 bytes/],
  [
    'more tokens in the header',
    tokenFile({ header: { num_tokens: 50 } }),
    /its header requires|document 0 begins/,
  ],
  ['fewer documents in the header', tokenFile({ header: { num_documents: 1 } }), /continues after/],
  ['an impossible number of tokens', tokenFile({ header: { num_tokens: 2 ** 60 } }), /which is impossible/],
  ['no tokens', tokenFile({ tokens: [], documents: [] }), /has 0 tokens and 0 documents/],
  ['no documents', tokenFile({ documents: [] }), /has 5 tokens and 0 documents/],
  ['sequences', tokenFile({ header: { num_sequences: 1 } }), /cut into sequences/],
  ['a sequence length', tokenFile({ header: { sequence_length: 8 } }), /cut into sequences/],
  [
    'a token beyond 31 bits',
    tokenFile({ token_bytes: 4, tokens: [2 ** 31], documents: [0] }),
    /token 2147483648/,
  ],
  [
    'a first document that begins later',
    tokenFile({ documents: [1] }),
    /document 0 begins at token 1; the first/,
  ],
  [
    'documents that do not ascend',
    tokenFile({ documents: [0, 3, 3] }),
    /document 2 .* the positions must ascend/,
  ],
  [
    'a document behind the tokens',
    tokenFile({ documents: [0, 5] }),
    /document 1 begins at token 5, and it has 5/,
  ],
];
for (const [name, bytes, message] of REFUSED)
  t.test(`refused, in one piece and in many: ${name}`, async (t) => {
    const expected = { code: 'dataset_tokens_invalid', message };
    t.throws(() => check(bytes), expected);
    t.throws(() => check(bytes, Array.from(bytes.keys())), expected);
  });

t.test('a body without a byte is empty', async (t) => {
  t.throws(() => check(new Uint8Array()), { code: 'dataset_empty' });
});
