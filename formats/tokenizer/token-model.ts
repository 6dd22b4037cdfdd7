import type { Vocabulary } from './vocabulary.js';

/** Model that converts pieces of a normalized text to tokens. */
export interface TokenModel {
  readonly vocabulary: Vocabulary;
  /**
   * @throws ZerofleetError `tokenizer_invalid` for a character without a token if the model has no unknown
   * token
   */
  encode(piece: string): readonly number[];
}
