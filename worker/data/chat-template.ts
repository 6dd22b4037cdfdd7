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

/** A range of characters (UTF-16 units) of a rendered chat. */
export interface Span {
  begin: number;
  end: number;
}

export interface RenderedChat {
  text: string;
  /** What the assistant says, ascending and apart: the loss is on these alone. */
  learned: Span[];
}

export interface TemplateOptions {
  /** Special tokens by name, such as `bos_token`. */
  tokens?: Readonly<Record<string, string>>;
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

  /** @throws ZerofleetError `chat_template_invalid` */
  constructor(source: string, { tokens = {}, date = null }: TemplateOptions = {}) {
    const { template, marks } = parseChatTemplate(source);
    this.template = template;
    this.marks = marks;
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
    return this.marks ? splitMarks(filled) : this.splitTurns(chat, filled);
  }

  /** The text that asks the assistant for its next turn, and what stands behind a turn of it. */
  ask(messages: readonly ChatMessage[]): { text: string; end: string } {
    const answered = [...messages, { role: LEARNED_ROLE, content: ANSWER }];
    const fill = (messages: readonly ChatMessage[], ask: boolean) =>
      this.fill({ messages, tools: null }, ask);
    const after = fill(answered, false).split(ANSWER).at(-1) ?? '';
    const plain = (text: string) => text.replaceAll(BEGIN_MARK, '').replaceAll(END_MARK, '');
    return { text: plain(fill(messages, true)), end: plain(after) };
  }

  private splitTurns({ messages, tools }: JsonlChat, text: string): RenderedChat {
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
      return this.template.render({ ...this.variables, messages, tools, add_generation_prompt });
    } catch (error) {
      throw invalidTemplate(
        `it fails for a chat of ${messages.length} messages: ${(error as Error).message}`,
      );
    }
  }
}

/** The chat without what a template may not know of, under its name; nothing where it has none. */
function* withoutTools({ messages, tools }: JsonlChat): Generator<[what: string, bare: JsonlChat]> {
  if (tools !== null && tools.length > 0) yield ['tools', { messages, tools: null }];
  const calling = messages.some(({ tool_calls }) => Array.isArray(tool_calls) && tool_calls.length > 0);
  const bare = messages.map(({ tool_calls: _, ...message }) => message);
  if (calling) yield ['tool_calls', { messages: bare, tools }];
}

function splitMarks(marked: string): RenderedChat {
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
