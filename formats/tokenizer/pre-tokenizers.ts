import { NUMERIC, PUNCTUATION, toByteLevel, WHITE_SPACE, WORDS } from './characters.js';
import type { Component } from './fields.js';
import { characterPattern, inverted, type Pattern, patternOf, regexPattern } from './pattern.js';
import { BEHAVIORS, type Behavior, type Piece, splitPiece } from './split.js';

/** Function that splits pieces of a normalized text. Pieces passed to a model are never empty. */
export type PreTokenizer = (pieces: readonly Piece[]) => Piece[];

const GPT2_WORDS =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

/** @throws ZerofleetError `tokenizer_invalid` */
export function preTokenizerOf(component: Component | null): PreTokenizer {
  if (!component) return (pieces) => [...pieces];
  const { type } = component;
  const make = KINDS[type];
  if (!make) throw component.unread(`the pre-tokenizer ${type}`);
  return make(component);
}

const KINDS: Readonly<Record<string, (component: Component) => PreTokenizer>> = {
  BertPreTokenizer: () =>
    chain([each(characterPattern(WHITE_SPACE), 'Removed'), each(characterPattern(PUNCTUATION), 'Isolated')]),
  ByteLevel: byteLevel,
  CharDelimiterSplit: (component) => {
    const delimiter = component.character('delimiter');
    const escaped = `\\u{${delimiter.codePointAt(0)?.toString(16)}}`;
    return each(characterPattern(new RegExp(escaped, 'u')), 'Removed');
  },
  Digits: (component) =>
    each(
      characterPattern(NUMERIC),
      component.boolean('individual_digits', false) ? 'Isolated' : 'Contiguous',
    ),
  FixedLength: (component) => {
    const length = component.count('length', 1, 5);
    return each(regexPattern(new RegExp(`[^]{1,${length}}`, 'gu')), 'Isolated');
  },
  Metaspace: metaspace,
  Punctuation: (component) =>
    each(characterPattern(PUNCTUATION), component.oneOf('behavior', BEHAVIORS, 'Isolated')),
  Sequence: sequence,
  Split: (component) => {
    const pattern = patternOf(component);
    return each(
      component.boolean('invert') ? inverted(pattern) : pattern,
      component.oneOf('behavior', BEHAVIORS),
    );
  },
  Whitespace: () => each(inverted(regexPattern(WORDS)), 'Removed'),
  WhitespaceSplit: () => each(characterPattern(WHITE_SPACE), 'Removed'),
};

function each(pattern: Pattern, behavior: Behavior): PreTokenizer {
  return (pieces) => notEmpty(pieces.flatMap((piece) => splitPiece(piece, pattern, behavior)));
}

function notEmpty(pieces: readonly Piece[]): Piece[] {
  return pieces.filter(({ text }) => text !== '');
}

function chain(parts: readonly PreTokenizer[]): PreTokenizer {
  return (pieces) => parts.reduce((divided, part) => part(divided), [...pieces]);
}

function sequence(component: Component): PreTokenizer {
  const parts = flattened(component);
  for (const [index, part] of parts.entries()) {
    // The start of the text is unknown once a prefix was added.
    const follows = parts.slice(0, index).some(({ type }) => type === 'Metaspace' || type === 'ByteLevel');
    if (follows && part.type === 'Metaspace' && prependScheme(part) === 'first')
      throw part.unread('prepend_scheme "first" behind Metaspace or ByteLevel');
  }
  return chain(parts.map((part) => preTokenizerOf(part)));
}

function flattened(component: Component): Component[] {
  return component.type === 'Sequence'
    ? component.components('pretokenizers').flatMap(flattened)
    : [component];
}

function byteLevel(component: Component): PreTokenizer {
  const prefix = component.boolean('add_prefix_space');
  const divide = component.boolean('use_regex', true)
    ? each(regexPattern(GPT2_WORDS), 'Isolated')
    : chain([]);
  return (pieces) => {
    const spaced = pieces.map((piece) =>
      prefix && !piece.text.startsWith(' ') ? { ...piece, text: ` ${piece.text}` } : piece,
    );
    return divide(spaced).map((piece) => ({ ...piece, text: toByteLevel(piece.text) }));
  };
}

const SCHEMES = ['first', 'never', 'always'] as const;

export function prependScheme(component: Component): (typeof SCHEMES)[number] {
  const scheme = component.oneOf('prepend_scheme', SCHEMES, 'always');
  if (!component.boolean('add_prefix_space', true) && scheme !== 'never')
    throw component.unread(`add_prefix_space false with prepend_scheme "${scheme}"`);
  return scheme;
}

function metaspace(component: Component): PreTokenizer {
  const sign = component.character('replacement');
  const scheme = prependScheme(component);
  const escaped = new RegExp(`\\u{${sign.codePointAt(0)?.toString(16)}}`, 'u');
  const divide = component.boolean('split', true)
    ? each(characterPattern(escaped), 'MergedWithNext')
    : chain([]);
  return (pieces) =>
    divide(
      pieces.map((piece) => {
        const text = piece.text.replaceAll(' ', sign);
        const prepends = scheme === 'always' || (scheme === 'first' && piece.first);
        return { ...piece, text: prepends && !text.startsWith(sign) ? sign + text : text };
      }),
    );
}
