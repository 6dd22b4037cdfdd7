import { BYTE_OF_CHARACTER } from './characters.js';
import type { Component } from './fields.js';
import { replace } from './normalizers.js';
import { prependScheme } from './pre-tokenizers.js';

/** Function from tokens to parts of a text. */
export type Decoder = (tokens: readonly string[]) => string[];

const STRICT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Greatest number of decoders in a sequence. */
const MAX_DECODERS = 16;
/** Greatest growth of a text by all decoders of a sequence. */
const MAX_GROWTH = 16;

/** Text of the bytes of a token, or of consecutive tokens that are bytes. */
interface BytesAsText {
  /** Of whole tokens: bytes that are not UTF-8 become replacement characters. */
  level: (bytes: readonly number[]) => string;
  /** Of byte tokens: if they are not UTF-8, each becomes a replacement character. */
  fallback: (bytes: readonly number[]) => string[];
}

const AS_TEXT: BytesAsText = {
  level: (bytes) => Buffer.from(bytes).toString('utf8'),
  fallback: (bytes) => {
    try {
      return [STRICT.decode(Uint8Array.from(bytes))];
    } catch {
      return bytes.map(() => '\ufffd');
    }
  },
};

/** A byte above 127 as an unpaired surrogate, as Python's `surrogateescape` has it. */
const KEPT_BYTE = /[\udc80-\udcff]/u;
const keptByte = (byte: number) => String.fromCharCode(byte < 0x80 ? byte : 0xdc00 + byte);
const KEPT: BytesAsText = {
  level: (bytes) => bytes.map(keptByte).join(''),
  fallback: (bytes) => bytes.map(keptByte),
};

/** Returns the bytes of a text that a decoder with `keeps_bytes` returned. */
export function keptBytes(text: string): Buffer {
  if (!KEPT_BYTE.test(text)) return Buffer.from(text);
  return Buffer.concat(
    Array.from(text, (character) =>
      KEPT_BYTE.test(character) ? Buffer.of(character.charCodeAt(0) - 0xdc00) : Buffer.from(character),
    ),
  );
}

/** A tokenizer's decoders: what they have used up of the limits, and how bytes become text. */
interface Used {
  decoders: number;
  growth: number;
  bytes: BytesAsText;
}

/**
 * Returns a decoder whose time and memory are linear in the texts of the tokens. The decoder has no regular expression,
 * which may backtrack. It has few parts, and little growth, which multiplies from part to part.
 * @param keeps_bytes true: bytes stay apart in the text, for `keptBytes`
 * @throws ZerofleetError `tokenizer_invalid`
 */
export function decoderOf(component: Component, keepsBytes = false): Decoder {
  return partOf(component, { decoders: 0, growth: 1, bytes: keepsBytes ? KEPT : AS_TEXT });
}

function partOf(component: Component, used: Used): Decoder {
  const { type } = component;
  const make = KINDS[type];
  if (!make) throw component.unread(`the decoder ${type}`);
  used.decoders += 1;
  if (used.decoders > MAX_DECODERS)
    throw component.unread(`a sequence of more than ${MAX_DECODERS} decoders`);
  const decoder = make(component, used);
  if (used.growth > MAX_GROWTH)
    throw component.unread(`a sequence of decoders that makes a text over ${MAX_GROWTH} times as long`);
  return decoder;
}

const KINDS: Readonly<Record<string, (component: Component, used: Used) => Decoder>> = {
  BPEDecoder: (component, used) => {
    const suffix = component.string('suffix');
    if (suffix === '') used.growth *= 2;
    return (tokens) =>
      tokens.map((token, index) => token.replaceAll(suffix, index === tokens.length - 1 ? '' : ' '));
  },
  ByteFallback: (_, { bytes }) => byteFallback(bytes),
  ByteLevel: (_, { bytes }) => byteLevel(bytes),
  Fuse: () => (tokens) => [tokens.join('')],
  Metaspace: (component) => {
    const sign = component.character('replacement');
    const drops = prependScheme(component) !== 'never';
    return (tokens) => tokens.map((token, index) => token.replaceAll(sign, index === 0 && drops ? '' : ' '));
  },
  Replace: (component, used) => {
    const replaced = component.component('pattern').value('String');
    if (typeof replaced !== 'string') throw component.unread('a decoder with a regular expression');
    used.growth *= Math.max(1, component.string('content').length / Math.max(1, replaced.length));
    const change = replace(component);
    return (tokens) => tokens.map(change);
  },
  Sequence: (component, used) => {
    const parts = component.components('decoders').map((part) => partOf(part, used));
    return (tokens) => parts.reduce((decoded, part) => part(decoded), [...tokens]);
  },
  Strip: strip,
  WordPiece: (component, used) => {
    const prefix = component.string('prefix');
    const clean = component.boolean('cleanup') ? cleaned : (token: string) => token;
    // A space before a token of one character.
    used.growth *= 2;
    return (tokens) =>
      tokens.map((token, index) => {
        if (index === 0) return clean(token);
        return clean(token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`);
      });
  },
};

function strip(component: Component): Decoder {
  const content = component.character('content');
  const start = component.count('start', 0);
  const stop = component.count('stop', 0);
  return (tokens) =>
    tokens.map((token) => {
      const characters = [...token];
      let begin = 0;
      while (begin < start && characters[begin] === content) begin++;
      let end = characters.length;
      while (characters.length - end < stop && end > begin && characters[end - 1] === content) end--;
      return characters.slice(begin, end).join('');
    });
}

const BYTE_TOKEN = /^<0x([0-9A-Fa-f]{2})>$/;

/** Returns whether `ByteFallback` decodes a token with those beside it. */
export function isByteToken(token: string): boolean {
  return BYTE_TOKEN.test(token);
}

function byteFallback({ fallback }: BytesAsText): Decoder {
  return (tokens) => {
    const found: string[] = [];
    let bytes: number[] = [];
    const flush = () => {
      if (bytes.length > 0) found.push(...fallback(bytes));
      bytes = [];
    };
    for (const token of tokens) {
      const byte = BYTE_TOKEN.exec(token)?.[1];
      if (byte !== undefined) bytes.push(Number.parseInt(byte, 16));
      else {
        flush();
        found.push(token);
      }
    }
    flush();
    return found;
  };
}

/** A token with any character that represents no byte is text. */
function byteLevel({ level }: BytesAsText): Decoder {
  return (tokens) => {
    const bytes = tokens.flatMap((token) => {
      const found = Array.from(token, (character) => BYTE_OF_CHARACTER.get(character));
      return found.includes(undefined) ? [...Buffer.from(token)] : (found as number[]);
    });
    return [level(bytes)];
  };
}

const CLEANED: readonly (readonly [string, string])[] = [
  [' .', '.'],
  [' ?', '?'],
  [' !', '!'],
  [' ,', ','],
  [" ' ", "'"],
  [" n't", "n't"],
  [" 'm", "'m"],
  [' do not', " don't"],
  [" 's", "'s"],
  [" 've", "'ve"],
  [" 're", "'re"],
];

function cleaned(token: string): string {
  return CLEANED.reduce((text, [found, put]) => text.replaceAll(found, put), token);
}
