import type { Template } from '@huggingface/jinja';
import { type JsonlMessage, type JsonlTools, LEARNED_ROLE } from '../../contracts/jsonl/fields.js';
import type { JsonlChat } from '../../contracts/jsonl/line.js';
import {
  BEGIN_MARK,
  DATE_FUNCTION,
  END_MARK,
  invalidTemplate,
  parseChatTemplate,
} from '../models/chat-template.js';
import { shownCalls } from './call-format.js';
import { strftime } from './strftime.js';
import { NUMBER_MARK, templateList, withNumbers } from './template-values.js';

/** Placeholder of an answer: a Unicode noncharacter, which no text contains. */
const ANSWER = '\ufdd2';
/** Mark inside the text of a special token that a chat contains literally. */
const LITERAL = '\ufdd3';
const MARKS = new RegExp(`[${BEGIN_MARK}${END_MARK}${LITERAL}${NUMBER_MARK}]`);

/** Range of characters (UTF-16 units) of a rendered chat. */
export interface Span {
  begin: number;
  end: number;
}

export interface RenderedText {
  text: string;
  /**
   * Positions inside the texts of special tokens that come from the chat and are to be encoded as plain text;
   * ascending.
   */
  literal: number[];
}

interface RenderedChat extends RenderedText {
  /** The assistant's parts, ascending and disjoint: only these count in the loss. */
  learned: Span[];
}

interface TemplateOptions {
  /** Special tokens by name, such as `bos_token`. */
  tokens?: Readonly<Record<string, string>>;
  /** Matches the special tokens that are plain text in messages; null: none. */
  special_texts?: RegExp | null;
  /** Date of `strftime_now`; null: the template has no such function. */
  date?: string | null;
}

/**
 * Chat template of a Hugging Face tokenizer (Jinja). The parts inside its `{% generation %}` tags are learned. Without
 * tags the learned part of each assistant turn is the text that the turn adds to the chat before it with the generation
 * prompt.
 */
export class ChatTemplate {
  private readonly template: Template;
  private readonly marks: boolean;
  private readonly variables: Readonly<Record<string, unknown>>;
  private readonly special_texts: RegExp | null;

  /** Parses a template. @throws ZerofleetError `chat_template_invalid` */
  constructor(source: string, { tokens = {}, special_texts = null, date = null }: TemplateOptions = {}) {
    const { template, marks } = parseChatTemplate(source);
    this.template = template;
    this.marks = marks;
    this.special_texts = special_texts;
    this.variables = {
      // Variables that transformers always defines.
      documents: null,
      ...tokens,
      ...(date !== null && { [DATE_FUNCTION]: (format: string) => strftime(date, format) }),
    };
  }

  /**
   * Renders a chat.
   * @throws ZerofleetError `chat_template_invalid` when the template fails, ignores tools or leaves the learned parts
   *   undetermined
   */
  render(chat: JsonlChat): RenderedChat {
    const filled = this.fill(chat, false);
    const { text, learned } = this.marks ? this.splitSpans(chat, filled) : this.splitTurns(chat, filled);
    this.checkWhole(chat, filled);
    const moved = (place: number) => place - (text.slice(0, place).split(LITERAL).length - 1);
    const spans = learned.map(({ begin, end }) => ({ begin: moved(begin), end: moved(end) }));
    return { ...withoutLiterals(text), learned: spans };
  }

  /**
   * Renders a prompt with a completion, which begins at `begin`: with what it adds to the prompt for it. Generation
   * tags have no effect.
   * @throws ZerofleetError as `render`
   */
  renderCompletion(prompt: JsonlChat, completion: readonly JsonlMessage[]): RenderedText & { begin: number } {
    const before = plain(this.fill(prompt, true));
    const whole = { ...prompt, messages: [...prompt.messages, ...completion] };
    const filled = this.fill(whole, false);
    const text = plain(filled);
    if (!text.startsWith(before))
      throw invalidTemplate(
        'its rendering of the prompt is not the beginning of its rendering of the prompt with the completion, so the learned part ' +
          'cannot be determined; use a template that adds the completion to the prompt',
      );
    this.checkWhole(whole, filled);
    return { ...withoutLiterals(text), begin: withoutLiterals(before).text.length };
  }

  /** Returns the text that prompts the assistant for its next turn, and the text after such a turn. */
  generationPrompt(
    messages: readonly JsonlMessage[],
    tools: JsonlTools = { tools: null },
  ): RenderedText & { end: string } {
    const chat = { messages, ...tools };
    const answered = { ...chat, messages: [...chat.messages, { role: LEARNED_ROLE, content: ANSWER }] };
    const after = this.fill(answered, false).split(ANSWER).at(-1) ?? '';
    const filled = this.fill(chat, true);
    if (tools.tools !== null && this.fill({ ...chat, tools: null }, true) === filled)
      throw invalidTemplate(
        'it does not render the tools of the chat; leave them out, or use another template',
      );
    return { ...withoutLiterals(plain(filled)), end: plain(after) };
  }

  /** Returns how the template writes calls of tools; null if it renders none. */
  shownCalls(): ReturnType<typeof shownCalls> {
    const render = (chat: JsonlChat, prompt: boolean) => withoutLiterals(plain(this.fill(chat, prompt))).text;
    return shownCalls(render, this.special_texts);
  }

  /** @throws ZerofleetError `chat_template_invalid` when the rendered text of a chat lacks a part of it */
  private checkWhole(chat: JsonlChat, filled: string): void {
    for (const [what, other] of withoutParts(chat, filled)) {
      if (this.isFilledAs(other, filled))
        throw invalidTemplate(
          `it does not render ${what} of the chat; use a template that does, or remove that from the data`,
        );
    }
  }

  /**
   * Splits a rendered text by its marks, and leaves out the learned parts of turns of weight 0. To find the parts of
   * such a turn, it renders the chat twice: up to the turn, and up to the turn before.
   */
  private splitSpans({ messages, tools }: JsonlChat, filled: string): MarkedChat {
    const { text, learned } = splitMarks(filled);
    const known = textsOf({ text, learned });
    const numSpans = (end: number) => {
      const texts =
        end === 0 ? [] : textsOf(splitMarks(this.fill({ messages: messages.slice(0, end), tools }, false)));
      if (texts.every((part, index) => part === known[index])) return texts.length;
      throw invalidTemplate(
        'its rendering of the first messages changes with later ones, so the parts of turns with "weight": 0 cannot be determined',
      );
    };
    const unlearned = messages.flatMap(({ role, weight }, index) =>
      role === LEARNED_ROLE && weight === 0 ? [{ begin: numSpans(index), end: numSpans(index + 1) }] : [],
    );
    const isLearned = (span: number) => unlearned.every(({ begin, end }) => span < begin || span >= end);
    return { text, learned: learned.filter(({ begin, end }, span) => end > begin && isLearned(span)) };
  }

  private splitTurns({ messages, tools }: JsonlChat, text: string): MarkedChat {
    const learned: Span[] = [];
    for (const [index, { role, weight }] of messages.entries()) {
      if (role !== LEARNED_ROLE || weight === 0) continue;
      const before = this.fill({ messages: messages.slice(0, index), tools }, true);
      const after = this.fill({ messages: messages.slice(0, index + 1), tools }, false);
      if (!after.startsWith(before) || !text.startsWith(after))
        throw invalidTemplate(
          "its rendering of the first messages changes with later ones, so the assistant's part cannot be " +
            'determined; put {% generation %} and {% endgeneration %} around that part',
        );
      learned.push({ begin: before.length, end: after.length });
    }
    return { text, learned };
  }

  /**
   * Returns whether the template renders a reduced chat to the same text. A template that fails uses the removed part.
   */
  private isFilledAs(chat: JsonlChat, text: string): boolean {
    try {
      return this.fill(chat, false) === text;
    } catch {
      return false;
    }
  }

  private fill({ messages, tools, parallel_tool_calls }: JsonlChat, add_generation_prompt: boolean): string {
    try {
      const list = (values: readonly unknown[]) => templateList(values, (text) => this.asText(text));
      const fields = {
        messages: list(messages.map(templateFields)),
        tools: tools && list(tools),
        ...(parallel_tool_calls !== undefined && { parallel_tool_calls }),
      };
      return withNumbers(this.template.render({ ...this.variables, ...fields, add_generation_prompt }));
    } catch (error) {
      throw invalidTemplate(
        `it fails for a chat of ${messages.length} messages: ${(error as Error).message}`,
      );
    }
  }

  /** Marks special tokens in a text or a field name of user data behind their first character. */
  private asText(text: string): string {
    const mark = MARKS.exec(text)?.[0];
    if (mark !== undefined)
      throw new Error(`the chat has the character U+${mark.charCodeAt(0).toString(16).toUpperCase()}`);
    if (!this.special_texts) return text;
    return text.replace(this.special_texts, (token) => {
      const [first = ''] = token;
      return first + LITERAL + token.slice(first.length);
    });
  }
}

/** Chat with the marks of literal special tokens. */
type MarkedChat = Omit<RenderedChat, 'literal'>;

/** OpenAI's newer name of the system's messages. Few templates know it. */
const DEVELOPER_ROLE = 'developer';

/** Returns the fields of a message that a template gets. */
function templateFields({ weight: _, ...message }: JsonlMessage): JsonlMessage {
  return message.role === DEVELOPER_ROLE ? { ...message, role: 'system' } : message;
}

/** Roles that every template has. */
const KNOWN_ROLES: readonly string[] = ['user', LEARNED_ROLE];

/** Text that is certainly no part of another one by chance. */
const LONG_TEXT = 16;

/**
 * Returns the chat without one of its parts that a template may not know, each under its name, unless the rendered text
 * has that.
 */
function* withoutParts(
  { messages, tools }: JsonlChat,
  text: string,
): Generator<[what: string, other: JsonlChat]> {
  if (tools !== null && tools.length > 0) yield ['the tools', { messages, tools: null }];
  const calling = messages.some(({ tool_calls }) => Array.isArray(tool_calls) && tool_calls.length > 0);
  const bare = messages.map(({ tool_calls: _, ...message }) => message);
  if (calling) yield ['the tool_calls', { messages: bare, tools }];
  let rendered = 0;
  for (const [index, message] of messages.entries()) {
    const content = message.content?.trim() ?? '';
    const at = text.indexOf(content, rendered);
    if (at >= 0) rendered = at + content.length;
    if (content === '' || KNOWN_ROLES.includes(message.role) || (at >= 0 && content.length >= LONG_TEXT))
      continue;
    const changed = messages.with(index, { ...message, content: ANSWER });
    yield [`message ${index} (role ${message.role})`, { messages: changed, tools }];
  }
}

function plain(text: string): string {
  return text.replaceAll(BEGIN_MARK, '').replaceAll(END_MARK, '');
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

function textsOf({ text, learned }: MarkedChat): string[] {
  return learned.map(({ begin, end }) => text.slice(begin, end));
}

/** Also returns parts without text. */
function splitMarks(marked: string): MarkedChat {
  const learned: Span[] = [];
  let text = '';
  let begin: number | null = null;
  for (const part of marked.split(/([\ufdd0\ufdd1])/)) {
    if (part === BEGIN_MARK && begin === null) begin = text.length;
    else if (part === END_MARK && begin !== null) {
      learned.push({ begin, end: text.length });
      begin = null;
    } else if (part === BEGIN_MARK || part === END_MARK)
      throw invalidTemplate('its generation tags are nested');
    else text += part;
  }
  return { text, learned };
}
