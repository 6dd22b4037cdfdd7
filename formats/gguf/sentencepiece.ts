/**
 * BPE over characters with spaces as ▁ and bytes as a fallback, such as that of Llama 2 and Mistral: llama.cpp's
 * `llama`.
 */
import { byteToken, unitsAt } from '../tokenizer/characters.js';
import { prependScheme } from '../tokenizer/pre-tokenizers.js';
import { bool, float32s, type GgufMetadata, string } from './file.js';
import { type Token, type TokenizerFile, tokenList, unsupported } from './vocabulary.js';

const SPACE = '\u2581';
/** Below the score of any merge. */
const NEVER_MERGED = -1e9;

/** Where a text gets a leading space: nowhere, behind each special token, or only at its beginning. */
type Prefix = 'never' | 'always' | 'first';

/**
 * llama.cpp merges the neighbours whose joined text has the highest score, of whatever pair it consists.
 * @param inTurns texts are parts of chats, which begin with a special token
 * @throws ZerofleetError `export_unsupported` for merges that no scores express
 */
export function sentencepieceTokens(
  file: TokenizerFile,
  vocabSize: number,
  inTurns: boolean,
): { tokens: Token[]; metadata: GgufMetadata } {
  const unknown = file.model.value('unk_token');
  const bytes = new Set(Array.from({ length: 256 }, (_, byte) => byteToken(byte)));
  const missing = [...bytes].find((token) => !file.ids.has(token));
  if (!file.model.boolean('byte_fallback', false) || missing !== undefined)
    throw unsupported('its characters outside of the vocabulary are not encoded as bytes (byte_fallback)');
  const prefix = prefixOf(file);
  // llama.cpp would look for ▁ in the text before it writes spaces so, and show it in answers.
  const spaces = file.tokenizer.added.find(({ content, special }) => !special && content.includes(SPACE));
  if (spaces) throw unsupported(`its added token ${JSON.stringify(spaces.content)} stands for spaces`);
  const scores = scoresOf(file, bytes);
  const tokens = tokenList(file, vocabSize, (text) => {
    if (bytes.has(text)) return 'byte';
    return text === unknown ? 'unknown' : 'normal';
  });
  return {
    tokens,
    metadata: [
      ['tokenizer.ggml.model', string('llama')],
      ['tokenizer.ggml.pre', string('default')],
      ['tokenizer.ggml.scores', float32s(tokens.map(({ text }) => scores.get(text) ?? NEVER_MERGED))],
      // llama.cpp adds the space behind every special token. Text of a chat only stands behind such tokens.
      ['tokenizer.ggml.add_space_prefix', bool(prefix === 'always' || (prefix === 'first' && !inTurns))],
    ],
  };
}

/** Checks that spaces become ▁, and returns where one is added. */
function prefixOf({ normalizers, preTokenizers, ids }: TokenizerFile): Prefix {
  const described = normalizers.map((part) => {
    if (part.type === 'Prepend') return `Prepend(${part.string('prepend')})`;
    const { String: replaced } = (part.value('pattern') ?? {}) as { String?: unknown };
    return part.type === 'Replace' ? `Replace(${String(replaced)}, ${part.string('content')})` : part.type;
  });
  const [first, ...others] = preTokenizers;
  const replace = `Replace( , ${SPACE})`;
  const text = described.join(' ');
  if (first === undefined && text === replace) return 'never';
  if (first === undefined && text === `Prepend(${SPACE}) ${replace}`) return 'always';
  const known = first?.type === 'Metaspace' && others.length === 0 && (text === '' || text === replace);
  if (first === undefined || !known || first.character('replacement') !== SPACE)
    throw unsupported(
      `its normalizer [${text}] with the pre-tokenizer [${preTokenizers.map(({ type }) => type).join(' ')}] is not llama.cpp's`,
    );
  const inner = [...ids.keys()].find((token) => token.lastIndexOf(SPACE) > 0);
  if (first.boolean('split', true) && inner !== undefined)
    throw unsupported(
      `it splits texts at spaces (Metaspace), and its token ${JSON.stringify(inner)} has one inside`,
    );
  return prependScheme(first);
}

/**
 * Returns a score for each token that merges make, the first merged one highest. The scores merge as the ranks do if
 * all merges to a token follow each other, and each pair of tokens whose text is a token is a merge.
 */
function scoresOf(
  { ids, merges, tokenizer }: TokenizerFile,
  bytes: ReadonlySet<string>,
): Map<string, number> {
  const scores = new Map<string, number>();
  const pairs = new Set<string>();
  let last = '';
  for (const [left, right] of merges) {
    const token = left + right;
    pairs.add(`${left} ${right}`);
    if (token === last) continue;
    if (scores.has(token))
      throw unsupported(`its merges to ${JSON.stringify(token)} do not follow each other`);
    scores.set(token, -scores.size);
    last = token;
  }
  const apart = new Set([...bytes, ...tokenizer.added.map(({ content }) => content)]);
  // A character is a piece even if it is no token.
  const isPiece = (part: string) => ids.has(part) || part.length === unitsAt(part, 0);
  for (const token of ids.keys()) {
    if (apart.has(token)) continue;
    for (let at = unitsAt(token, 0); at < token.length; at += unitsAt(token, at)) {
      const [left, right] = [token.slice(0, at), token.slice(at)];
      if (isPiece(left) && isPiece(right) && !pairs.has(`${left} ${right}`))
        throw unsupported(
          `${JSON.stringify(left)} and ${JSON.stringify(right)} are no merge, but llama.cpp would join them to the token ${JSON.stringify(token)}`,
        );
    }
  }
  return scores;
}
