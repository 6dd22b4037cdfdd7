import type { Component } from './fields.js';

/**
 * Normalizer `Precompiled`: a table of SentencePiece, base64: u32 bytes of a double-array trie (Darts), the
 * trie, and the zero-terminated replacements. Graphemes shorter than 6 bytes are looked up whole, then each
 * character. A look-up takes the shortest entry that is a prefix of the key, and replaces the whole key, as
 * the Hugging Face library does.
 */
export function precompiled(component: Component): (text: string) => string {
  const blob = Buffer.from(component.string('precompiled_charsmap'), 'base64');
  const trieBytes = blob.length >= 4 ? blob.readUInt32LE(0) : -1;
  if (trieBytes < 4 || trieBytes % 4 !== 0 || 4 + trieBytes > blob.length)
    throw component.unread('a precompiled_charsmap that is cut short');
  const trie = Uint32Array.from({ length: trieBytes / 4 }, (_, index) => blob.readUInt32LE(4 + 4 * index));
  const replacements = blob.subarray(4 + trieBytes);
  const lookUp = (key: string): string | null => {
    const begin = shortestEntry(trie, Buffer.from(key));
    if (begin === null) return null;
    const end = replacements.indexOf(0, begin);
    return replacements.subarray(begin, end < 0 ? undefined : end).toString('utf8');
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

function shortestEntry(trie: Uint32Array, key: Uint8Array): number | null {
  let unitIndex = offsetOf(trie[0] ?? 0);
  for (const byte of key) {
    if (byte === 0) return null;
    unitIndex ^= byte;
    const unit = trie[unitIndex] ?? 0;
    if ((unit & LABEL) >>> 0 !== byte) return null;
    unitIndex ^= offsetOf(unit);
    if (unit & HAS_LEAF) return (trie[unitIndex] ?? 0) & VALUE;
  }
  return null;
}

function offsetOf(unit: number): number {
  return (unit >>> 10) << ((unit & (1 << 9)) >> 6);
}
