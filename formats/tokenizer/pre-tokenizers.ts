import { NUMERIC, PUNCTUATION, toByteLevel, WHITE_SPACE, WORDS } from './characters.js';
import { Component } from './fields.js';
import { characterPattern, inverted, type Pattern, patternOf, regexPattern } from './pattern.js';
import { BEHAVIORS, type Behavior, type Piece, splitPiece } from './split.js';

/** How a normalized text becomes the pieces that the model converts. */
export interface PreTokenizer {
  /** Splits pieces. No piece is empty. */
  divide: Divide;
  /** Returns a piece as the vocabulary writes it. */
  spell(piece: string): string;
}

type Divide = (pieces: readonly Piece[]) => Piece[];

const GPT2_WORDS =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

/** @throws ZerofleetError `tokenizer_invalid` */
export function preTokenizerOf(component: Component | null): PreTokenizer {
  const parts = component ? flattened(component) : [];
  checkOrder(parts);
  const last = parts.at(-1);
  if (last?.type !== 'ByteLevel') return { divide: chain(parts.map(divideOf)), spell: (piece) => piece };
  const before = parts.slice(0, -1).map(divideOf);
  return { divide: chain([...before, byteLevelWords(last)]), spell: toByteLevel };
}

/** Returns the regular expressions at which a pre-tokenizer splits texts. */
export function splitPatterns(preTokenizer: unknown): string[] {
  if (preTokenizer === undefined || preTokenizer === null) return [];
  return flattened(new Component(preTokenizer, 'pre_tokenizer')).flatMap((part) => {
    const regex = part.type === 'Split' ? part.component('pattern').value('Regex') : null;
    return typeof regex === 'string' ? [regex] : [];
  });
}

function divideOf(component: Component): Divide {
  const { type } = component;
  const make = KINDS[type];
  if (!make) throw component.unread(`the pre-tokenizer ${type}`);
  return make(component);
}

const KINDS: Readonly<Record<string, (component: Component) => Divide>> = {
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

function each(pattern: Pattern, behavior: Behavior): Divide {
  return (pieces) => {
    const found: Piece[] = [];
    for (const piece of pieces)
      for (const part of splitPiece(piece, pattern, behavior)) if (part.text !== '') found.push(part);
    return found;
  };
}

function chain(parts: readonly Divide[]): Divide {
  return (pieces) => parts.reduce((divided, part) => part(divided), [...pieces]);
}

function checkOrder(parts: readonly Component[]): void {
  for (const [index, part] of parts.entries()) {
    // The start of the text is unknown once a prefix was added.
    const follows = parts.slice(0, index).some(({ type }) => type === 'Metaspace' || type === 'ByteLevel');
    if (follows && part.type === 'Metaspace' && prependScheme(part) === 'first')
      throw part.unread('prepend_scheme "first" behind Metaspace or ByteLevel');
  }
}

function flattened(component: Component): Component[] {
  return component.type === 'Sequence'
    ? component.components('pretokenizers').flatMap(flattened)
    : [component];
}

function byteLevel(component: Component): Divide {
  const words = byteLevelWords(component);
  return (pieces) => words(pieces).map((piece) => ({ ...piece, text: toByteLevel(piece.text) }));
}

function byteLevelWords(component: Component): Divide {
  const prefix = component.boolean('add_prefix_space');
  const divide = component.boolean('use_regex', true)
    ? each(regexPattern(GPT2_WORDS), 'Isolated')
    : chain([]);
  if (!prefix) return divide;
  return (pieces) =>
    divide(
      pieces.map((piece) => (piece.text.startsWith(' ') ? piece : { ...piece, text: ` ${piece.text}` })),
    );
}

const SCHEMES = ['first', 'never', 'always'] as const;

export function prependScheme(component: Component): (typeof SCHEMES)[number] {
  const scheme = component.oneOf('prepend_scheme', SCHEMES, 'always');
  if (!component.boolean('add_prefix_space', true) && scheme !== 'never')
    throw component.unread(`add_prefix_space false with prepend_scheme "${scheme}"`);
  return scheme;
}

function metaspace(component: Component): Divide {
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
