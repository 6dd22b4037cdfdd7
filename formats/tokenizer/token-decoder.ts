import { type Decoder, decoderOf, isByteToken, keptBytes } from './decoders.js';
import { Component } from './fields.js';

/** How a token becomes text: not at all, as a byte whose text depends on the bytes beside it, or as text. */
export type TextKind = 'none' | 'byte' | 'text';

/** Table for decoding tokens. It can be sent to another thread. */
export interface DecoderTable {
  /** Text of each token that has one, by id. */
  texts: ReadonlyMap<number, string>;
  /** The component `decoder` of a `tokenizer.json`; null if it has none. */
  decoder: unknown;
}

/** Decodes tokens, in a time that is linear in the number of tokens: `Tokenizer` has checked the table. */
export class TokenDecoder {
  private readonly texts: DecoderTable['texts'];
  private readonly decoder: Decoder | null;
  private readonly keepingBytes: Decoder | null;

  /** @throws ZerofleetError `tokenizer_invalid` */
  constructor({ texts, decoder }: DecoderTable) {
    this.texts = texts;
    const made = (keepsBytes: boolean) =>
      decoder === null ? null : decoderOf(new Component(decoder, 'decoder'), keepsBytes);
    this.decoder = made(false);
    this.keepingBytes = made(true);
  }

  /** Returns the text of tokens. Special tokens and unknown ids have none. */
  decode(ids: readonly number[]): string {
    return this.decodeBy(this.decoder, ids);
  }

  /** Decodes the tokens together with the prompt, because alone they may lose a space before their first word. */
  decodeAfter(prompt: readonly number[], tokens: readonly number[]): string {
    return this.decodeAfterBy(this.decoder, prompt, tokens);
  }

  /** Returns the bytes of a token that follows others, parts of characters included. */
  bytesAfter(prompt: readonly number[], token: number): Buffer {
    return keptBytes(this.decodeAfterBy(this.keepingBytes, prompt, [token]));
  }

  textKind(token: number): TextKind {
    const text = this.texts.get(token);
    if (text === undefined) return 'none';
    return isByteToken(text) ? 'byte' : 'text';
  }

  private decodeBy(decoder: Decoder | null, ids: readonly number[]): string {
    const tokens = ids.flatMap((id) => this.texts.get(id) ?? []);
    return decoder ? decoder(tokens).join('') : tokens.join(' ');
  }

  private decodeAfterBy(
    decoder: Decoder | null,
    prompt: readonly number[],
    tokens: readonly number[],
  ): string {
    const before = this.decodeBy(decoder, prompt);
    const text = this.decodeBy(decoder, [...prompt, ...tokens]);
    return text.startsWith(before) ? text.slice(before.length) : this.decodeBy(decoder, tokens);
  }
}
