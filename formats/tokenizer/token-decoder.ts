import { type Decoder, decoderOf, isByteToken } from './decoders.js';
import { Component } from './fields.js';

/** How a token becomes text: not at all, as a byte whose text depends on the bytes beside it, or as text. */
export type TextKind = 'none' | 'byte' | 'text';

/** What decodes tokens. It can be sent to another thread. */
export interface DecoderTable {
  /** What the decoder gets of each token with text, by id. */
  texts: ReadonlyMap<number, string>;
  /** The component `decoder` of a `tokenizer.json`; null if it has none. */
  decoder: unknown;
}

/** Decodes tokens, in a time that is linear in the number of tokens: `Tokenizer` has checked the table. */
export class TokenDecoder {
  private readonly texts: DecoderTable['texts'];
  private readonly decoder: Decoder | null;

  /** @throws ZerofleetError `tokenizer_invalid` */
  constructor({ texts, decoder }: DecoderTable) {
    this.texts = texts;
    this.decoder = decoder === null ? null : decoderOf(new Component(decoder, 'decoder'));
  }

  /** Returns the text of tokens. Special tokens and unknown ids have none. */
  decode(ids: readonly number[]): string {
    const tokens = ids.flatMap((id) => this.texts.get(id) ?? []);
    return this.decoder ? this.decoder(tokens).join('') : tokens.join(' ');
  }

  /** Decodes the tokens together with the prompt, because alone they may lose a space before their first word. */
  decodeAfter(prompt: readonly number[], tokens: readonly number[]): string {
    const before = this.decode(prompt);
    const text = this.decode([...prompt, ...tokens]);
    return text.startsWith(before) ? text.slice(before.length) : this.decode(tokens);
  }

  textKind(token: number): TextKind {
    const text = this.texts.get(token);
    if (text === undefined) return 'none';
    return isByteToken(text) ? 'byte' : 'text';
  }
}
