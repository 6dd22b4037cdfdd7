import { toByteLevel, trimEnd, trimStart } from './characters.js';
import type { Component } from './fields.js';
import { patternOf } from './pattern.js';
import { precompiled } from './precompiled.js';

export type Normalizer = (text: string) => string;

/** @throws ZerofleetError `tokenizer_invalid` */
export function normalizerOf(component: Component | null): Normalizer {
  if (!component) return (text) => text;
  const { type } = component;
  const make = KINDS[type];
  if (!make) throw component.unread(`the normalizer ${type}`);
  return make(component);
}

const KINDS: Readonly<Record<string, (component: Component) => Normalizer>> = {
  BertNormalizer: bert,
  ByteLevel: () => toByteLevel,
  Lowercase: () => lowercase,
  NFC: () => (text) => text.normalize('NFC'),
  NFD: () => (text) => text.normalize('NFD'),
  NFKC: () => (text) => text.normalize('NFKC'),
  NFKD: () => (text) => text.normalize('NFKD'),
  Nmt: () => (text) => text.replace(NMT_REMOVED, '').replace(NMT_SPACES, ' '),
  Precompiled: precompiled,
  Prepend: (component) => {
    const prefix = component.string('prepend');
    return (text) => (text === '' ? '' : prefix + text);
  },
  Replace: replace,
  Sequence: (component) => {
    const parts = component.components('normalizers').map(normalizerOf);
    return (text) => parts.reduce((changed, part) => part(changed), text);
  },
  Strip: (component) => {
    const left = component.boolean('strip_left');
    const right = component.boolean('strip_right');
    return (text) => {
      const begun = left ? trimStart(text) : text;
      return right ? trimEnd(begun) : begun;
    };
  },
  StripAccents: () => (text) => text.replace(/\p{M}/gu, ''),
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
const NMT_REMOVED = /[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]/g;
const NMT_SPACES = /[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]/g;

/** Lower-cases each character alone, without the special case of a final sigma. */
function lowercase(text: string): string {
  const lower = text.toLowerCase();
  if (!lower.includes('\u03c2')) return lower;
  let out = '';
  for (const character of text) out += character.toLowerCase();
  return out;
}

export function replace(component: Component): Normalizer {
  const pattern = patternOf(component);
  const content = component.string('content');
  return (text) => {
    let out = '';
    for (const { begin, end, matches } of pattern(text)) out += matches ? content : text.slice(begin, end);
    return out;
  };
}

const CLEANED = /[\0\ufffd]|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}]/gu;
const IDEOGRAPHS =
  /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu;

function bert(component: Component): Normalizer {
  const clean = component.boolean('clean_text');
  const ideographs = component.boolean('handle_chinese_chars');
  const lower = component.boolean('lowercase');
  const accents = component.boolean('strip_accents', lower);
  return (text) => {
    let changed = text;
    if (clean) changed = changed.replace(CLEANED, '').replace(/\p{White_Space}/gu, ' ');
    if (ideographs) changed = changed.replace(IDEOGRAPHS, ' $& ');
    if (accents) changed = changed.normalize('NFD').replace(/\p{Mn}/gu, '');
    return lower ? lowercase(changed) : changed;
  };
}
