/** The parts of a rendered chat that a model learns, found by the origins of its text. */

import { type OriginText, TEMPLATE } from '../template/origin-text.js';
import { LEARN_BEGIN, LEARN_END, LOOP_BEGIN, LOOP_END, type MessagePart, messageOf } from './chat-origins.js';
import { invalidTemplate } from './parsed-template.js';

/** Range of characters (UTF-16 units) of a rendered chat. */
export interface Span {
  begin: number;
  end: number;
}

/** Part of a rendered text, without a length where a mark stands. */
interface Part extends Span {
  origin: number;
}

/** The loops over messages of a rendering. */
interface Loops {
  /** Where a template writes each message: the iterations of its loops. */
  turns: ReadonlyMap<number, readonly Span[]>;
  /** End of the last loop; 0 without one. */
  end: number;
}

/** Rendered chat with its parts. */
export class Rendering {
  readonly text: string;
  // Of a prompt, only the text is needed in most cases.
  private foundParts: readonly Part[] | null = null;
  private foundLoops: Loops | null = null;

  constructor(private readonly origins: OriginText) {
    this.text = origins.text;
  }

  private get parts(): readonly Part[] {
    this.foundParts ??= partsOf(this.origins);
    return this.foundParts;
  }

  private get loops(): Loops {
    this.foundLoops ??= loopsOf(this.parts);
    return this.foundLoops;
  }

  /** Text that the template writes behind the last message: the prompt for an answer. */
  get tail(): string {
    return this.text.slice(this.loops.end);
  }

  /** Returns the texts of a message. */
  partsOf(message: number, part?: MessagePart): Part[] {
    return this.parts.filter(({ origin }) => {
      const found = messageOf(origin);
      return found?.message === message && found.part !== 'turn' && (!part || found.part === part);
    });
  }

  /** Returns whether the text has something of this origin. */
  has(isWanted: (origin: number) => boolean): boolean {
    return this.parts.some(({ begin, end, origin }) => end > begin && isWanted(origin));
  }

  /** Returns where the template writes a message; null if no loop does. */
  turnOf(message: number): Span | null {
    const turns = this.loops.turns.get(message) ?? [];
    const data = this.partsOf(message);
    const isInside = ({ begin, end }: Span) => data.some((part) => begin <= part.begin && part.end <= end);
    return turns.find(isInside) ?? turns.find(({ begin, end }) => end > begin) ?? null;
  }

  /**
   * Returns the end of the header with which a turn begins.
   * @param prompt what the template writes behind the messages before the turn, as a prompt for it
   */
  headerEnd(message: number, turn: Span, prompt: string): number {
    const data = this.partsOf(message).filter(
      ({ begin, origin }) => begin >= turn.begin && messageOf(origin)?.part !== 'field',
    );
    const head = this.text.slice(turn.begin, data[0]?.begin ?? turn.end);
    const at = head.indexOf(prompt);
    return turn.begin + (at < 0 ? commonLength(head, prompt) : at + prompt.length);
  }

  /** Returns whether a turn has texts of other messages behind its own. */
  hasOthers(message: number, { begin, end }: Span): boolean {
    return this.parts.some((part) => {
      const found = messageOf(part.origin);
      const isOther = found !== null && found.message !== message && found.part !== 'turn';
      return isOther && part.begin >= begin && part.begin < end && part.end > part.begin;
    });
  }

  /**
   * Returns the end of a turn that is followed by other texts.
   * @param alone the chat up to this message
   */
  footerEnd(message: number, alone: Rendering): number {
    const footerOf = (rendering: Rendering) =>
      rendering.text.slice(rendering.partsOf(message).at(-1)?.end ?? rendering.text.length);
    const footer = footerOf(this);
    return this.text.length - footer.length + commonLength(footer, footerOf(alone));
  }

  /** Returns the parts inside of generation tags, each with the message that it belongs to. */
  tagged(): (Span & { message: number | null })[] {
    const spans: (Span & { message: number | null })[] = [];
    let begin: number | null = null;
    for (const { begin: at, origin } of this.parts) {
      if (origin === LEARN_BEGIN && begin === null) begin = at;
      else if (origin === LEARN_END && begin !== null) {
        const span = { begin, end: at };
        if (at > begin) spans.push({ ...span, message: this.ownerOf(span) });
        begin = null;
      } else if (origin === LEARN_BEGIN || origin === LEARN_END)
        throw invalidTemplate('its generation tags are nested');
    }
    return spans;
  }

  /** Returns the spans without the text of reasoning. */
  withoutReasoning(spans: readonly Span[]): Span[] {
    const masked = this.parts.filter(
      ({ begin, end, origin }) => end > begin && messageOf(origin)?.part === 'reasoning',
    );
    return masked.reduce<Span[]>(
      (left, { begin, end }) =>
        left.flatMap((span) =>
          [
            { begin: span.begin, end: Math.min(span.end, begin) },
            { begin: Math.max(span.begin, end), end: span.end },
          ].filter((part) => part.end > part.begin),
        ),
      [...spans],
    );
  }

  /** Returns the offsets inside of the texts of special tokens that the chat contains, behind their first character. */
  literalCuts(specialTexts: RegExp): number[] {
    const offsets: number[] = [];
    let begin = 0;
    const find = (end: number) => {
      for (const { 0: token, index } of this.text.slice(begin, end).matchAll(specialTexts))
        offsets.push(begin + index + ([...token][0]?.length ?? 0));
    };
    for (const part of this.parts) {
      if (part.origin !== TEMPLATE || part.begin === part.end) continue;
      find(part.begin);
      begin = part.end;
    }
    find(this.text.length);
    return offsets;
  }

  private ownerOf({ begin, end }: Span): number | null {
    for (const part of this.parts) {
      const found = messageOf(part.origin);
      if (found && found.part !== 'turn' && part.begin >= begin && part.end <= end) return found.message;
    }
    for (const [message, turns] of this.loops.turns)
      if (turns.some((turn) => turn.begin <= begin && end <= turn.end)) return message;
    return null;
  }
}

function partsOf({ runs }: OriginText): Part[] {
  let at = 0;
  return runs.map(({ text, origin }) => {
    const begin = at;
    at += text.length;
    return { begin, end: at, origin };
  });
}

function loopsOf(parts: readonly Part[]): Loops {
  const turns = new Map<number, Span[]>();
  const open: { message: number; begin: number }[][] = [];
  let loopsEnd = 0;
  const close = (end: number) => {
    const turn = open.at(-1)?.pop();
    if (turn) turns.set(turn.message, [...(turns.get(turn.message) ?? []), { ...turn, end }]);
  };
  for (const { begin, origin } of parts) {
    const found = messageOf(origin);
    if (origin === LOOP_BEGIN) open.push([]);
    else if (origin === LOOP_END) {
      close(begin);
      open.pop();
      loopsEnd = begin;
    } else if (found?.part === 'turn') {
      close(begin);
      open.at(-1)?.push({ message: found.message, begin });
    }
  }
  return { turns, end: loopsEnd };
}

/** Returns the length that a text shares with a prompt; it does not end inside of a tag, such as `<think>`. */
function commonLength(text: string, prompt: string): number {
  let length = 0;
  while (length < text.length && text[length] === prompt[length]) length++;
  if (length === prompt.length) return length;
  return text.slice(0, length).replace(/[<[][^<>[\]]*$/, '').length;
}
