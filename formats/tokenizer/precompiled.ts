import type { Component } from './fields.js';

/**
 * Normalizer `Precompiled`: a table of SentencePiece, base64: u32 bytes of a double-array trie (Darts), the
 * trie, and the zero-terminated replacements. Graphemes shorter than 6 bytes are looked up whole, then each
 * character. A look-up takes the shortest entry that is a prefix of the key, and replaces the whole key, as
 * the Hugging Face library does.
 *
 * `longest_match`, which converted models of SentencePiece have and that library ignores: each position of a text is
 * replaced by the longest entry that begins there, as SentencePiece does.
 */
export function precompiled(component: Component): (text: string) => string {
  const blob = Buffer.from(component.string('precompiled_charsmap'), 'base64');
  const trieBytes = blob.length >= 4 ? blob.readUInt32LE(0) : -1;
  if (trieBytes < 4 || trieBytes % 4 !== 0 || 4 + trieBytes > blob.length)
    throw component.unread('a precompiled_charsmap that is cut short');
  const trie = Uint32Array.from({ length: trieBytes / 4 }, (_, index) => blob.readUInt32LE(4 + 4 * index));
  const replacements = blob.subarray(4 + trieBytes);
  const replacement = (begin: number): string => {
    const end = replacements.indexOf(0, begin);
    return replacements.subarray(begin, end < 0 ? undefined : end).toString('utf8');
  };
  if (component.boolean('longest_match', false)) return (text) => replaceLongest(text, trie, replacement);
  const lookUp = (key: string): string | null => {
    const [shortest] = entriesAt(trie, Buffer.from(key), 0);
    return shortest === undefined ? null : replacement(shortest.value);
  };
  return (text) => {
    let out = '';
    for (const { segment } of GRAPHEMES.segment(text)) {
      const whole = Buffer.byteLength(segment) < 6 ? lookUp(segment) : null;
      if (whole !== null) out += whole;
      else for (const character of segment) out += lookUp(character) ?? character;
    }
    return out;
  };
}

const GRAPHEMES = new Intl.Segmenter('en', { granularity: 'grapheme' });

const HAS_LEAF = 1 << 8;
const VALUE = 0x7fffffff;
const LABEL = 0x800000ff;

function replaceLongest(text: string, trie: Uint32Array, replacement: (value: number) => string): string {
  const bytes = Buffer.from(text);
  let out = '';
  let copied = 0;
  for (let offset = 0; offset < bytes.length; ) {
    let longest: Entry | undefined;
    for (const entry of entriesAt(trie, bytes, offset)) longest = entry;
    if (longest === undefined) {
      offset += 1;
      continue;
    }
    out += bytes.toString('utf8', copied, offset) + replacement(longest.value);
    offset = longest.end;
    copied = offset;
  }
  return out + bytes.toString('utf8', copied);
}

/** An entry of the trie that is a prefix of the bytes at an offset. */
interface Entry {
  end: number;
  value: number;
}

/** Yields the entries that begin at an offset of a text, shortest first. */
function* entriesAt(trie: Uint32Array, text: Uint8Array, from: number): Generator<Entry> {
  let unitIndex = offsetOf(trie[0] ?? 0);
  for (let at = from; at < text.length; at++) {
    const byte = text[at] as number;
    if (byte === 0) return;
    unitIndex ^= byte;
    const unit = trie[unitIndex] ?? 0;
    if ((unit & LABEL) >>> 0 !== byte) return;
    unitIndex ^= offsetOf(unit);
    if (unit & HAS_LEAF) yield { end: at + 1, value: (trie[unitIndex] ?? 0) & VALUE };
  }
}

function offsetOf(unit: number): number {
  return (unit >>> 10) << ((unit & (1 << 9)) >> 6);
}
