import { ZerofleetError } from '../../contracts/index.js';
import { BytesTokenizer } from '../encoding/bytes-tokenizer.js';
import type { AnswerDecoder } from '../encoding/prompt-tokenizer.js';
import { type DecoderTable, TokenDecoder } from '../tokenizer/token-decoder.js';
import { Vocabulary } from './vocabulary.js';

/** Pairs of tokens whose text is compared with that of both, and primes that spread them over the vocabulary. */
const NUM_PAIRS = 64;
const SPREAD = [7919, 104_729] as const;

/**
 * Returns the vocabulary of a tokenizer for texts of a grammar.
 * @param table null: each token is a byte
 * @throws ZerofleetError `tokenizer_invalid` if the text of a token depends on its neighbours, or a character has no
 *   token
 */
export function vocabularyOf(table: DecoderTable | null, numTokens: number): Vocabulary {
  const decoder: AnswerDecoder = table === null ? new BytesTokenizer() : new TokenDecoder(table);
  const ids = table === null ? [...Array(numTokens).keys()] : [...table.texts.keys()];
  const known = ids.filter((id) => id < numTokens && decoder.textKind(id) !== 'none');
  // Decoders change the beginning of a text, so each token follows another one.
  const first = known.find((id) => decoder.textKind(id) === 'text') ?? 0;
  const bytes = new Map(known.map((id) => [id, Uint8Array.from(decoder.bytesAfter([first], id))]));
  requireIndependent(decoder, first, known, bytes);
  const vocabulary = new Vocabulary(bytes, numTokens);
  const missing = vocabulary.missingCharacters();
  if (missing === '') return vocabulary;
  throw new ZerofleetError(
    'tokenizer_invalid',
    `the tokenizer has no token for ${JSON.stringify(missing.slice(0, 10))} alone, so it cannot write every JSON text: leave response_format out, and set tool_choice to auto or none`,
  );
}

function requireIndependent(
  decoder: AnswerDecoder,
  first: number,
  known: readonly number[],
  bytes: ReadonlyMap<number, Uint8Array>,
): void {
  const texts = known.filter((id) => decoder.textKind(id) === 'text');
  for (let index = 1; index <= NUM_PAIRS && texts.length > 0; index++) {
    const pair = SPREAD.map((prime) => texts[(index * prime) % texts.length] as number);
    const joined = Buffer.concat(pair.map((id) => bytes.get(id) ?? new Uint8Array()));
    const text = joined.toString('utf8');
    if (Buffer.from(text).equals(joined) && decoder.decodeAfter([first], pair) !== text)
      throw new ZerofleetError(
        'tokenizer_invalid',
        'the text of a token depends on the next one with this tokenizer, so answers cannot follow a schema: leave response_format out, and set tool_choice to auto or none',
      );
  }
}
