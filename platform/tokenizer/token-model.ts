import type { Vocabulary } from './vocabulary.js';

/** Turns the pieces of a normalized text into tokens. */
export interface TokenModel {
  readonly vocabulary: Vocabulary;
  /** @throws ZerofleetError `tokenizer_invalid` for a character that the model has no token for, unknown or not */
  encode(piece: string): readonly number[];
}
