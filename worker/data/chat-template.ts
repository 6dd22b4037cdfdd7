import type { Template } from '@huggingface/jinja';
import type { ChatMessage } from '../../contracts/index.js';
import { LEARNED_ROLE } from '../../contracts/jsonl.js';
import {
  BEGIN_MARK,
  END_MARK,
  invalidTemplate,
  parseChatTemplate,
} from '../../platform/models/chat-template.js';

/** Stands for an answer; no text has it, as Unicode says. */
const ANSWER = '\ufdd2';
/** Stands inside of what a message says of a special token. */
const LITERAL = '\ufdd3';

/** A range of characters (UTF-16 units) of a rendered chat. */
export interface Span {
  begin: number;
  end: number;
}

export interface RenderedText {
  text: string;
  /** Places inside of texts of special tokens that messages had, and that are to be read as texts; ascending. */
  literal: number[];
}

export interface RenderedChat extends RenderedText {
  /** What the assistant says, ascending and apart: the loss is on these alone. */
  learned: Span[];
}

/**
 * A chat template as Hugging Face tokenizers have them (Jinja). Where it marks what the assistant generates with
 * `{% generation %}` tags, those are what is learned. Without tags it is, for each turn of the assistant, what the template
 * adds to the chat before it, the prompt for the answer included.
 */
export class ChatTemplate {
  private readonly template: Template;
  private readonly marks: boolean;

  /**
   * @param variables what the template may use beside the messages, such as `bos_token`
   * @param special_texts finds the special tokens that are texts where messages have them; null: there are none
   * @throws ZerofleetError `chat_template_invalid`
   */
  constructor(
    source: string,
    private readonly variables: Readonly<Record<string, string>> = {},
    private readonly special_texts: RegExp | null = null,
  ) {
    const { template, marks } = parseChatTemplate(source);
    this.template = template;
    this.marks = marks;
  }

  /** @throws ZerofleetError `chat_template_invalid` when the template fails or does not tell what is learned */
  render(messages: readonly ChatMessage[]): RenderedChat {
    const { text, learned } = this.marks
      ? splitMarks(this.fill(messages, false))
      : this.renderTurns(messages);
    const moved = (place: number) => place - (text.slice(0, place).split(LITERAL).length - 1);
    const spans = learned.map(({ begin, end }) => ({ begin: moved(begin), end: moved(end) }));
    return { ...withoutLiterals(text), learned: spans };
  }

  /** The text that asks the assistant for its next turn, and what stands behind a turn of it. */
  ask(messages: readonly ChatMessage[]): RenderedText & { end: string } {
    const answered = [...messages, { role: LEARNED_ROLE, content: ANSWER }];
    const after = this.fill(answered, false).split(ANSWER).at(-1) ?? '';
    const plain = (text: string) => text.replaceAll(BEGIN_MARK, '').replaceAll(END_MARK, '');
    return { ...withoutLiterals(plain(this.fill(messages, true))), end: plain(after) };
  }

  private renderTurns(messages: readonly ChatMessage[]): MarkedChat {
    const text = this.fill(messages, false);
    const learned: Span[] = [];
    for (const [index, { role }] of messages.entries()) {
      if (role !== LEARNED_ROLE) continue;
      const before = this.fill(messages.slice(0, index), true);
      const after = this.fill(messages.slice(0, index + 1), false);
      if (!after.startsWith(before) || !text.startsWith(after))
        throw invalidTemplate(
          'what it makes of the first messages changes with those that follow, so that it does not tell which ' +
            'part the assistant says; put {% generation %} and {% endgeneration %} around that part',
        );
      learned.push({ begin: before.length, end: after.length });
    }
    return { text, learned };
  }

  private fill(messages: readonly ChatMessage[], add_generation_prompt: boolean): string {
    try {
      const said = messages.map((message) => this.asTexts(message));
      return this.template.render({ ...this.variables, messages: said, add_generation_prompt });
    } catch (error) {
      throw invalidTemplate(
        `it fails for a chat of ${messages.length} messages: ${(error as Error).message}`,
      );
    }
  }

  /** A message whose special tokens have a mark behind their first character. */
  private asTexts({ role, content }: ChatMessage): ChatMessage {
    const marked = (text: string) => {
      if (text.includes(LITERAL)) throw new Error('a message has the character U+FDD3');
      if (!this.special_texts) return text;
      return text.replace(this.special_texts, (token) => {
        const [first = ''] = token;
        return first + LITERAL + token.slice(first.length);
      });
    };
    return { role: marked(role), content: marked(content) };
  }
}

/** A chat with the marks of special tokens that are texts. */
type MarkedChat = Omit<RenderedChat, 'literal'>;

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
