import type { Span } from './chat-template.js';

/** Spelling of tokens in a vocabulary. */
type Surface = 'byte-level' | 'spaces-marked';

/** Space marker of SentencePiece vocabularies. */
const SPACE = '\u2581';
const BYTE = /^<0x([0-9A-F]{2})>$/;

interface Token {
  /** Its entry in the vocabulary; special tokens are spelled as in the text. */
  content: string;
  special: boolean;
}

/**
 * What the tokens of a vocabulary spell, which may be parts of characters in UTF-8. Tokens are spelled when they are
 * first needed, one behind another, so that those of a text are near each other in memory.
 */
export class TokenSpellings {
  private bytes = new Uint8Array(1 << 12);
  /** No token ends at 0. */
  private used = 1;
  /** By token; 0: not spelled yet. */
  private readonly ends: Int32Array;
  private readonly begins: Int32Array;
  private readonly special: Uint8Array;

  constructor(
    vocabSize: number,
    private readonly surface: Surface,
    private readonly tokenOf: (id: number) => Token,
  ) {
    this.begins = new Int32Array(vocabSize);
    this.ends = new Int32Array(vocabSize);
    this.special = new Uint8Array(vocabSize);
  }

  /**
   * Returns which tokens overlap a span, by matching the tokens with the text.
   * @returns null when the tokens do not spell the text, because a normalizer changed it
   */
  tokensOfSpans(text: string, ids: readonly number[], spans: readonly Span[]): Uint8Array | null {
    const bytes = utf8(text);
    const borders = spans.map(({ begin, end }) => [byteLength(text, begin), byteLength(text, end)] as const);
    const counts = new Uint8Array(ids.length);
    let position = 0;
    let span = 0;
    let index = 0;
    for (const id of ids) {
      const length = this.matched(bytes, position, id);
      if (length === null) return null;
      const end = position + length;
      while (span < borders.length && (borders[span]?.[1] ?? 0) <= position) span++;
      const [from, to] = borders[span] ?? [0, 0];
      // A token without text belongs to the character that follows.
      counts[index++] = Math.max(position, from) < Math.min(Math.max(end, position + 1), to) ? 1 : 0;
      position = end;
    }
    return position === bytes.length ? counts : null;
  }

  /** Returns the bytes of the text that a token matches; null without a match. */
  private matched(text: Uint8Array, position: number, id: number): number | null {
    if (this.ends[id] === 0) this.spell(id);
    const begin = this.begins[id] as number;
    const end = this.ends[id] as number;
    if (this.startsAt(text, position, begin, end)) return end - begin;
    // A space that the tokenizer added before a text matches nothing.
    const added = this.special[id] === 0 && begin < end && this.bytes[begin] === 0x20;
    return added && this.startsAt(text, position, begin + 1, end) ? end - begin - 1 : null;
  }

  private startsAt(text: Uint8Array, position: number, begin: number, end: number): boolean {
    const { bytes } = this;
    for (let at = begin; at < end; at++) if (text[position + at - begin] !== bytes[at]) return false;
    return true;
  }

  private spell(id: number): void {
    const { content, special } = this.tokenOf(id);
    const token = special ? utf8(content) : spelled(content, this.surface);
    const end = this.used + token.length;
    if (end > this.bytes.length) {
      const larger = new Uint8Array(2 * end);
      larger.set(this.bytes);
      this.bytes = larger;
    }
    this.bytes.set(token, this.used);
    this.begins[id] = this.used;
    this.ends[id] = end;
    this.special[id] = Number(special);
    this.used = end;
  }
}

function spelled(content: string, surface: Surface): Uint8Array {
  if (surface === 'byte-level') return Uint8Array.from(content, (char) => BYTE_OF.get(char) ?? 0);
  const byte = BYTE.exec(content)?.[1];
  return byte === undefined ? utf8(content.replaceAll(SPACE, ' ')) : Uint8Array.of(Number.parseInt(byte, 16));
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function byteLength(text: string, end: number): number {
  return Buffer.byteLength(text.slice(0, end));
}

/** Characters that byte-level vocabularies use for bytes: printable Latin-1 unchanged, the others from U+0100 on. */
const BYTE_OF: ReadonlyMap<string, number> = byteCharacters();

function byteCharacters(): Map<string, number> {
  const printable = (byte: number) =>
    (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte < 0xad) || byte > 0xad;
  const map = new Map<string, number>();
  let others = 0;
  for (let byte = 0; byte < 256; byte++)
    map.set(String.fromCodePoint(printable(byte) ? byte : 0x100 + others++), byte);
  return map;
}
