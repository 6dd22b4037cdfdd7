import type { Template } from '@huggingface/jinja';
import type { ChatMessage } from '../../contracts/index.js';
import { type JsonlChat, LEARNED_ROLE } from '../../contracts/jsonl.js';
import {
  BEGIN_MARK,
  DATE_FUNCTION,
  END_MARK,
  invalidTemplate,
  parseChatTemplate,
} from '../../platform/models/chat-template.js';
import { strftime } from './strftime.js';

/** Stands for an answer; no text has it, as Unicode says. */
const ANSWER = '\ufdd2';
/** Stands inside of what a chat says of a special token. */
const LITERAL = '\ufdd3';

/** A range of characters (UTF-16 units) of a rendered chat. */
export interface Span {
  begin: number;
  end: number;
}

export interface RenderedText {
  text: string;
  /** Places inside of texts of special tokens that the chat had, and that are to be read as texts; ascending. */
  literal: number[];
}

export interface RenderedChat extends RenderedText {
  /** What the assistant says, ascending and apart: the loss is on these alone. */
  learned: Span[];
}

export interface TemplateOptions {
  /** Special tokens by name, such as `bos_token`. */
  tokens?: Readonly<Record<string, string>>;
  /** Finds the special tokens that are texts where messages have them; null: there are none. */
  special_texts?: RegExp | null;
  /** The day that `strftime_now` tells; null: the template has no such function. */
  date?: string | null;
}

/**
 * A chat template as Hugging Face tokenizers have them (Jinja). Where it marks what the assistant generates with
 * `{% generation %}` tags, those are what is learned. Without tags it is, for each turn of the assistant, what the template
 * adds to the chat before it, the prompt for the answer included.
 */
export class ChatTemplate {
  private readonly template: Template;
  private readonly marks: boolean;
  private readonly variables: Readonly<Record<string, unknown>>;
  private readonly special_texts: RegExp | null;

  /** @throws ZerofleetError `chat_template_invalid` */
  constructor(source: string, { tokens = {}, special_texts = null, date = null }: TemplateOptions = {}) {
    const { template, marks } = parseChatTemplate(source);
    this.template = template;
    this.marks = marks;
    this.special_texts = special_texts;
    this.variables = {
      // What transformers gives to every template, whether there are any.
      documents: null,
      ...tokens,
      ...(date !== null && { [DATE_FUNCTION]: (format: string) => strftime(date, format) }),
    };
  }

  /** @throws ZerofleetError `chat_template_invalid` when the template fails, leaves tools out or does not tell what is learned */
  render(chat: JsonlChat): RenderedChat {
    const filled = this.fill(chat, false);
    for (const [what, bare] of withoutTools(chat)) {
      if (this.isFilledAs(bare, filled))
        throw invalidTemplate(
          `it leaves the ${what} of the chat out; name a template that shows them, or take them out of the data`,
        );
    }
    const { text, learned } = this.marks ? splitMarks(filled) : this.splitTurns(chat, filled);
    const moved = (place: number) => place - (text.slice(0, place).split(LITERAL).length - 1);
    const spans = learned.map(({ begin, end }) => ({ begin: moved(begin), end: moved(end) }));
    return { ...withoutLiterals(text), learned: spans };
  }

  /** The text that asks the assistant for its next turn, and what stands behind a turn of it. */
  ask(messages: readonly ChatMessage[]): RenderedText & { end: string } {
    const answered = [...messages, { role: LEARNED_ROLE, content: ANSWER }];
    const fill = (messages: readonly ChatMessage[], ask: boolean) =>
      this.fill({ messages, tools: null }, ask);
    const after = fill(answered, false).split(ANSWER).at(-1) ?? '';
    const plain = (text: string) => text.replaceAll(BEGIN_MARK, '').replaceAll(END_MARK, '');
    return { ...withoutLiterals(plain(fill(messages, true))), end: plain(after) };
  }

  private splitTurns({ messages, tools }: JsonlChat, text: string): MarkedChat {
    const learned: Span[] = [];
    for (const [index, { role }] of messages.entries()) {
      if (role !== LEARNED_ROLE) continue;
      const before = this.fill({ messages: messages.slice(0, index), tools }, true);
      const after = this.fill({ messages: messages.slice(0, index + 1), tools }, false);
      if (!after.startsWith(before) || !text.startsWith(after))
        throw invalidTemplate(
          'what it makes of the first messages changes with those that follow, so that it does not tell which ' +
            'part the assistant says; put {% generation %} and {% endgeneration %} around that part',
        );
      learned.push({ begin: before.length, end: after.length });
    }
    return { text, learned };
  }

  /** A template that fails for less than the whole chat reads what was left out. */
  private isFilledAs(chat: JsonlChat, text: string): boolean {
    try {
      return this.fill(chat, false) === text;
    } catch {
      return false;
    }
  }

  private fill({ messages, tools }: JsonlChat, add_generation_prompt: boolean): string {
    try {
      const said = { messages: this.asTexts(messages), tools: this.asTexts(tools) };
      return this.template.render({ ...this.variables, ...said, add_generation_prompt });
    } catch (error) {
      throw invalidTemplate(
        `it fails for a chat of ${messages.length} messages: ${(error as Error).message}`,
      );
    }
  }

  /** What users wrote, its special tokens with a mark behind their first character: all strings of it, and all names of fields. */
  private asTexts(value: unknown): unknown {
    if (typeof value === 'string') return this.asText(value);
    if (Array.isArray(value)) return value.map((item) => this.asTexts(item));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, field]) => [this.asText(name), this.asTexts(field)]),
    );
  }

  private asText(text: string): string {
    if (text.includes(LITERAL)) throw new Error('the chat has the character U+FDD3');
    if (!this.special_texts) return text;
    return text.replace(this.special_texts, (token) => {
      const [first = ''] = token;
      return first + LITERAL + token.slice(first.length);
    });
  }
}

/** A chat with the marks of special tokens that are texts. */
type MarkedChat = Omit<RenderedChat, 'literal'>;

/** The chat without what a template may not know of, under its name; nothing where it has none. */
function* withoutTools({ messages, tools }: JsonlChat): Generator<[what: string, bare: JsonlChat]> {
  if (tools !== null && tools.length > 0) yield ['tools', { messages, tools: null }];
  const calling = messages.some(({ tool_calls }) => Array.isArray(tool_calls) && tool_calls.length > 0);
  const bare = messages.map(({ tool_calls: _, ...message }) => message);
  if (calling) yield ['tool_calls', { messages: bare, tools }];
}

function withoutLiterals(marked: string): RenderedText {
  const [first = '', ...parts] = marked.split(LITERAL);
  const literal: number[] = [];
  let text = first;
  for (const part of parts) {
    literal.push(text.length);
    text += part;
  }
  return { text, literal };
}

function splitMarks(marked: string): MarkedChat {
  const learned: Span[] = [];
  let text = '';
  let begin: number | null = null;
  for (const part of marked.split(/([\ufdd0\ufdd1])/)) {
    if (part === BEGIN_MARK && begin === null) begin = text.length;
    else if (part === END_MARK && begin !== null) {
      if (text.length > begin) learned.push({ begin, end: text.length });
      begin = null;
    } else if (part === BEGIN_MARK || part === END_MARK)
      throw invalidTemplate(
        'its generation tags are nested, or a message has the character U+FDD0 or U+FDD1',
      );
    else text += part;
  }
  return { text, learned };
}
