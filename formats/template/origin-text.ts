/** Text of which each part has an origin, such as a message of a chat. */

/** Part of one origin. A part without text marks a position. */
export interface Run {
  text: string;
  origin: number;
}

/** Origin of text that a template contains. */
export const TEMPLATE = 0;

/** White space of Python. */
const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const WORDS = new RegExp(`[^${SPACE}]+`, 'g');

/** Immutable text with origins and the operations of Python's `str`. */
export class OriginText {
  readonly text: string;

  constructor(readonly runs: readonly Run[]) {
    let whole = '';
    for (const { text } of runs) whole += text;
    this.text = whole;
  }

  static of(text: string, origin: number): OriginText {
    return new OriginText([{ text, origin }]);
  }

  static concat(parts: readonly OriginText[]): OriginText {
    const all: Run[] = [];
    for (const { runs } of parts) for (const run of runs) all.push(run);
    return new OriginText(all);
  }

  static join(parts: readonly OriginText[], separator: OriginText): OriginText {
    return OriginText.concat(parts.flatMap((part, index) => (index === 0 ? [part] : [separator, part])));
  }

  /** Returns a part. It keeps the marks at its borders. */
  slice(begin: number, end = this.text.length): OriginText {
    const runs: Run[] = [];
    let at = 0;
    for (const { text, origin } of this.runs) {
      const from = Math.max(begin - at, 0);
      const to = Math.min(end - at, text.length);
      if (from < to || (text === '' && from === 0 && to === 0))
        runs.push({ text: text.slice(from, to), origin });
      at += text.length;
    }
    if (runs.length === 0) return OriginText.of('', this.originAt(begin));
    return new OriginText(runs);
  }

  /** @param chars the characters to remove; null: white space */
  strip(chars: string | null, { begin, end }: { begin: boolean; end: boolean }): OriginText {
    const set = chars === null ? `[${SPACE}]` : `[${chars.replace(/[\\\]^-]/g, '\\$&')}]`;
    if (chars === '') return this;
    const { text } = this;
    const from = begin ? (new RegExp(`^${set}+`, 'u').exec(text)?.[0].length ?? 0) : 0;
    let to = text.length;
    if (end) {
      const one = new RegExp(`^${set}$`, 'u');
      while (to > from && one.test(lastCharacter(text, to))) to -= lastCharacter(text, to).length;
    }
    return this.slice(from, to);
  }

  /** @param separator null: runs of white space */
  split(separator: string | null, limit = -1): OriginText[] {
    if (separator === '') throw new Error('empty separator');
    const parts: OriginText[] = [];
    let begin = 0;
    const isFull = () => limit >= 0 && parts.length >= limit;
    if (separator === null) {
      for (const { 0: word, index } of this.text.matchAll(WORDS)) {
        if (isFull()) return [...parts, this.slice(index)];
        parts.push(this.slice(index, index + word.length));
      }
      return parts;
    }
    for (
      let at = this.text.indexOf(separator);
      at >= 0 && !isFull();
      at = this.text.indexOf(separator, begin)
    ) {
      parts.push(this.slice(begin, at));
      begin = at + separator.length;
    }
    return [...parts, this.slice(begin)];
  }

  /** @param limit number of replacements; negative: all */
  replace(old: string, replacement: OriginText, limit: number): OriginText {
    if (old !== '') return OriginText.join(this.split(old, limit), replacement);
    const characters = this.characters();
    const positions = limit < 0 ? characters.length + 1 : limit;
    const parts = characters.map((part, index) =>
      index < positions ? OriginText.concat([replacement, part]) : part,
    );
    return OriginText.concat(characters.length < positions ? [...parts, replacement] : parts);
  }

  characters(): OriginText[] {
    let at = 0;
    return Array.from(this.text, (character) => {
      at += character.length;
      return this.slice(at - character.length, at);
    });
  }

  /** Applies a function that changes letters. If it changes the length, the result has one origin. */
  mapped(change: (text: string) => string): OriginText {
    const text = change(this.text);
    if (text.length !== this.text.length) return OriginText.of(text, this.originAt(0));
    let at = 0;
    return new OriginText(
      this.runs.map((run) => {
        at += run.text.length;
        return { text: text.slice(at - run.text.length, at), origin: run.origin };
      }),
    );
  }

  /** Applies a function to the text of each run, such as an escape of characters. */
  mappedRuns(change: (text: string) => string): OriginText {
    return new OriginText(this.runs.map(({ text, origin }) => ({ text: change(text), origin })));
  }

  /** Returns the first origin from a position on that is not the template. */
  private originAt(position: number): number {
    let at = 0;
    for (const { text, origin } of this.runs) {
      at += text.length;
      if (at >= position && origin !== TEMPLATE) return origin;
    }
    return TEMPLATE;
  }
}

function lastCharacter(text: string, end: number): string {
  const pair = text.slice(Math.max(0, end - 2), end);
  return /^[\ud800-\udbff][\udc00-\udfff]$/.test(pair) ? pair : text.slice(end - 1, end);
}
