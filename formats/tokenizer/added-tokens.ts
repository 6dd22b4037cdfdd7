import { ENDS_WITH_WORD, STARTS_WITH_WORD, trimEnd, trimStart } from './characters.js';
import { type Component, refused } from './fields.js';
import type { Normalizer } from './normalizers.js';
import type { Vocabulary } from './vocabulary.js';

/** Token that is matched in a text before the model is applied. */
export interface AddedToken {
  id: number;
  content: string;
  special: boolean;
  single_word: boolean;
  lstrip: boolean;
  rstrip: boolean;
  /** Its form in the normalized text; null if it is matched before normalization. */
  normalized: string | null;
}

/** Part of a text: a token, or text between tokens. */
export interface Section {
  begin: number;
  end: number;
  token: AddedToken | null;
}

/** Returns whether a special token may occur at a range of a text. */
export type MaySpecial = (begin: number, end: number) => boolean;

/** @throws ZerofleetError `tokenizer_invalid` */
export function addedTokensOf(
  components: readonly Component[],
  vocabulary: Vocabulary,
  normalize: Normalizer,
): AddedToken[] {
  const found = new Map<string, AddedToken>();
  const size = vocabulary.ids.size;
  let nextId = size;
  for (const component of components) {
    const content = component.string('content');
    if (content === '') continue;
    const id = found.get(content)?.id ?? vocabulary.id(content) ?? nextId;
    // The Hugging Face library assigns ids itself, and so do other readers of the file.
    if (component.count('id', 0) !== id)
      throw component.unread(
        `the id ${component.count('id', 0)} for ${JSON.stringify(content)}, which follows as ${id},`,
      );
    if (id === nextId) nextId++;
    const special = component.boolean('special', false);
    const normalized = component.boolean('normalized', !special);
    found.set(content, {
      id,
      content,
      special,
      single_word: component.boolean('single_word', false),
      lstrip: component.boolean('lstrip', false),
      rstrip: component.boolean('rstrip', false),
      normalized: normalized ? normalize(content) : null,
    });
  }
  return [...found.values()];
}

/** Matches tokens in a text: leftmost first, then longest. */
export class TokenFinder {
  /** Token texts by their first unit, longest first. */
  private readonly byFirst = new Map<string, { text: string; token: AddedToken }[]>();
  /** Matches the units that begin a token; null without tokens. */
  private readonly firsts: RegExp | null;

  /** @throws ZerofleetError `tokenizer_invalid` */
  constructor(tokens: readonly AddedToken[], textOf: (token: AddedToken) => string) {
    const seen = new Set<string>();
    for (const token of tokens) {
      const text = textOf(token);
      if (text === '' || seen.has(text))
        throw refused(
          `its added token ${JSON.stringify(token.content)} is ${JSON.stringify(text)} when normalized, as is no or another token`,
        );
      seen.add(text);
      const first = text[0] as string;
      const others = this.byFirst.get(first);
      if (others) others.push({ text, token });
      else this.byFirst.set(first, [{ text, token }]);
    }
    for (const entries of this.byFirst.values()) entries.sort((a, b) => b.text.length - a.text.length);
    const units = [...this.byFirst.keys()].map(
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    this.firsts = units.length === 0 ? null : new RegExp(`[${units.join('')}]`, 'g');
  }

  /** Splits the whole text, in order. A token in a forbidden position is left to the model. */
  sections(text: string, maySpecial: MaySpecial): Section[] {
    const found: Section[] = [];
    let position = 0;
    for (const { begin, end, token } of this.matches(text)) {
      if (token.special && !maySpecial(begin, end)) continue;
      if (token.single_word && isInWord(text, begin, end)) continue;
      const from = token.lstrip ? Math.max(trimEnd(text.slice(0, begin)).length, position) : begin;
      const until = token.rstrip ? text.length - trimStart(text.slice(end)).length : end;
      if (position < from) found.push({ begin: position, end: from, token: null });
      found.push({ begin: from, end: until, token });
      position = until;
    }
    if (position < text.length) found.push({ begin: position, end: text.length, token: null });
    return found;
  }

  private *matches(text: string): Generator<{ begin: number; end: number; token: AddedToken }> {
    for (let begin = this.candidate(text, 0); begin < text.length; ) {
      const entry = this.byFirst
        .get(text[begin] as string)
        ?.find((entry) => text.startsWith(entry.text, begin));
      const end = begin + (entry?.text.length ?? 1);
      if (entry) yield { begin, end, token: entry.token };
      begin = this.candidate(text, end);
    }
  }

  /** Returns the next position, from `from` on, of a unit that begins a token; the text's end without one. */
  private candidate(text: string, from: number): number {
    if (this.firsts === null) return text.length;
    this.firsts.lastIndex = from;
    return this.firsts.exec(text)?.index ?? text.length;
  }
}

function isInWord(text: string, begin: number, end: number): boolean {
  return ENDS_WITH_WORD.test(characterBefore(text, begin)) || STARTS_WITH_WORD.test(text.slice(end, end + 2));
}

function characterBefore(text: string, at: number): string {
  return [...text.slice(Math.max(0, at - 2), at)].at(-1) ?? '';
}
