import { toRegExp } from 'oniguruma-to-es';
import { type Component, refused } from './fields.js';

/** Range of a text, and whether a pattern matches it. The ranges of a text are ordered and cover it. */
export interface Range {
  begin: number;
  end: number;
  matches: boolean;
}

export interface Pattern {
  (text: string): Range[];
  /** Returns the matches if they are all of a text, as those of words mostly are; otherwise null. */
  words?(text: string): readonly string[] | null;
}

/**
 * Compiles a `pattern` field: a text, or a regular expression of Oniguruma, which the Hugging Face library
 * uses.
 */
export function patternOf(component: Component): Pattern {
  const pattern = component.component('pattern');
  const text = pattern.value('String');
  if (typeof text === 'string') return (inside) => ranges(inside, literal(inside, text));
  const source = pattern.string('Regex');
  return regexPattern(compiled(source, pattern.path));
}

export function regexPattern(regex: RegExp): Pattern {
  const pattern = (inside: string) => ranges(inside, matchesOf(regex, inside));
  return Object.assign(pattern, { words: (inside: string) => wordsOf(regex, inside) });
}

function wordsOf(regex: RegExp, inside: string): readonly string[] | null {
  const words = inside.match(regex) ?? [];
  let length = 0;
  for (const word of words) {
    if (word === '') return null;
    length += word.length;
  }
  return length === inside.length ? words : null;
}

/** Matches each character of a class alone. */
export function characterPattern(regex: RegExp): Pattern {
  const each = new RegExp(regex.source, 'gu');
  return (inside) => ranges(inside, matchesOf(each, inside));
}

export function inverted(pattern: Pattern): Pattern {
  return (text) => pattern(text).map(({ matches, ...range }) => ({ ...range, matches: !matches }));
}

function compiled(source: string, path: string): RegExp {
  try {
    return toRegExp(withWords(source), { global: true, accuracy: 'strict', rules: { captureGroup: true } });
  } catch (error) {
    throw refused(`${path}: the regular expression is not supported: ${(error as Error).message}`);
  }
}

const WORD = '\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}';
const WORD_CLASS = `[${WORD}²³¹¼-¾]`;
/**
 * Word characters of Oniguruma, which the translation of its syntax defines differently; some are excluded
 * within a class.
 */
const WORD_ESCAPES: Readonly<Record<string, { alone: string; in_class: string }>> = {
  w: { alone: WORD_CLASS, in_class: `[${WORD}]` },
  W: { alone: `[^${WORD_CLASS.slice(1)}`, in_class: `[^${WORD}]` },
  b: {
    alone: `(?:(?<!${WORD_CLASS})(?=${WORD_CLASS})|(?<=${WORD_CLASS})(?!${WORD_CLASS}))`,
    in_class: '\\b',
  },
  B: {
    alone: `(?:(?<!${WORD_CLASS})(?!${WORD_CLASS})|(?<=${WORD_CLASS})(?=${WORD_CLASS}))`,
    in_class: '\\B',
  },
};

function withWords(source: string): string {
  let depth = 0;
  return source.replace(/\\([\s\S])|\[:\^?\w+:\]|[[\]]/g, (part, escaped: string | undefined) => {
    const word = escaped === undefined ? undefined : WORD_ESCAPES[escaped];
    if (word) return depth > 0 ? word.in_class : word.alone;
    if (part === '[') depth++;
    if (part === ']' && depth > 0) depth--;
    return part;
  });
}

type Match = readonly [begin: number, end: number];

function* literal(inside: string, text: string): Generator<Match> {
  if (text === '') return yield* matchesOf(/(?:)/gu, inside);
  for (let at = inside.indexOf(text); at >= 0; at = inside.indexOf(text, at + text.length))
    yield [at, at + text.length];
}

/** An empty match right after a match does not count, and the search continues after the next character. */
function* matchesOf(regex: RegExp, inside: string): Generator<Match> {
  let from = 0;
  let lastEnd: number | null = null;
  while (from <= inside.length) {
    regex.lastIndex = from;
    const found = regex.exec(inside);
    if (!found) return;
    const begin = found.index;
    const end = begin + found[0].length;
    if (begin === end && lastEnd === end) {
      from += (inside.codePointAt(from) ?? 0) > 0xffff ? 2 : 1;
      continue;
    }
    from = end;
    lastEnd = end;
    yield [begin, end];
  }
}

function ranges(inside: string, matches: Iterable<Match>): Range[] {
  if (inside === '') return [{ begin: 0, end: 0, matches: false }];
  const found: Range[] = [];
  let previous = 0;
  for (const [begin, end] of matches) {
    if (previous !== begin) found.push({ begin: previous, end: begin, matches: false });
    found.push({ begin, end, matches: true });
    previous = end;
  }
  if (previous !== inside.length) found.push({ begin: previous, end: inside.length, matches: false });
  return found;
}
