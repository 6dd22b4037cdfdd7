import type { Component } from './fields.js';
import type { TokenModel } from './token-model.js';
import { Vocabulary } from './vocabulary.js';

/**
 * WordPiece: repeatedly takes the longest token that is a prefix of the rest of a word; without one the whole
 * word is unknown.
 */
export class WordPiece implements TokenModel {
  readonly vocabulary: Vocabulary;
  private readonly unknown: string;
  private readonly prefix: string;
  private readonly maxCharacters: number;

  constructor(component: Component, reserved: ReadonlySet<string>) {
    this.vocabulary = Vocabulary.read(component, reserved);
    this.unknown = component.string('unk_token');
    this.prefix = component.string('continuing_subword_prefix');
    this.maxCharacters = component.count('max_input_chars_per_word', 0);
  }

  encode(piece: string): readonly number[] {
    const characters = [...piece];
    if (characters.length > this.maxCharacters) return this.unknownWord();
    const found: number[] = [];
    for (let begin = 0; begin < characters.length; ) {
      let end = characters.length;
      let id: number | undefined;
      for (; end > begin; end--) {
        const part = characters.slice(begin, end).join('');
        id = this.vocabulary.spelled(begin > 0 ? this.prefix + part : part);
        if (id !== undefined) break;
      }
      if (id === undefined) return this.unknownWord();
      found.push(id);
      begin = end;
    }
    return found;
  }

  private unknownWord(): number[] {
    return [this.vocabulary.named(this.unknown, 'model.unk_token')];
  }
}
