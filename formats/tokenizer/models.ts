import { Bpe } from './bpe.js';
import type { Component } from './fields.js';
import type { TokenModel } from './token-model.js';
import { Unigram } from './unigram.js';
import { WordPiece } from './word-piece.js';

/**
 * @param reserved tokens that no text spells
 * @throws ZerofleetError `tokenizer_invalid`
 */
export function modelOf(component: Component, reserved: ReadonlySet<string>): TokenModel {
  switch (typeOf(component)) {
    case 'BPE':
      return new Bpe(component, reserved);
    case 'WordPiece':
      return new WordPiece(component, reserved);
    case 'Unigram':
      return new Unigram(component, reserved);
    default:
      throw component.unread(`the model ${component.type}`);
  }
}

/** Old files have no model type. */
function typeOf(component: Component): string {
  if (component.value('type') !== null) return component.type;
  if (component.value('merges') !== null) return 'BPE';
  if (Array.isArray(component.value('vocab'))) return 'Unigram';
  if (component.value('max_input_chars_per_word') !== null) return 'WordPiece';
  throw component.unread('a model without a type');
}
