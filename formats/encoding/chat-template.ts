import { type JsonlMessage, type JsonlTools, LEARNED_ROLE } from '../../contracts/jsonl/fields.js';
import type { JsonlChat } from '../../contracts/jsonl/line.js';
import { OriginInterpreter } from '../template/interpreter.js';
import { ArrayValue, newScope, type Program, type Scope, type Value } from '../template/library.js';
import { asValue, originsOf } from '../template/values.js';
import { shownCalls } from './call-format.js';
import { DATA, LOOP_BEGIN, LOOP_END, messageValue } from './chat-origins.js';
import { Rendering, type Span } from './learned-parts.js';
import { type MissingPart, templateFields, unrendered } from './missing-parts.js';
import { invalidTemplate, parseChatTemplate } from './parsed-template.js';
import { templateVariables } from './template-variables.js';

export type { Span } from './learned-parts.js';
export type { MissingPart } from './missing-parts.js';

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
  /** Parts of the chat that the text does not have. */
  missing: MissingPart[];
}

/** How chats are learned: `data.chat` of a job. */
export interface ChatRules {
  /** `together`: a chat is one text; `each`: every turn of the assistant is one, with the messages before it. */
  turns: 'together' | 'each';
  /** Whether reasoning is learned. */
  reasoning: 'learn' | 'mask';
}

interface TemplateOptions {
  /** Special tokens by name, such as `bos_token`. */
  tokens?: Readonly<Record<string, string>>;
  /** Matches the special tokens that are plain text in messages; null: none. */
  special_texts?: RegExp | null;
  /** Date of `strftime_now`; null: the template has no such function. */
  date?: string | null;
  rules?: ChatRules;
}

const DEFAULT_RULES: ChatRules = { turns: 'together', reasoning: 'learn' };

/**
 * Chat template of a Hugging Face tokenizer (Jinja). The parts inside its `{% generation %}` tags are learned. Without
 * tags the learned part of each assistant turn is what the template writes for it behind the prompt for an answer.
 */
export class ChatTemplate {
  private readonly program: Program;
  private readonly marks: boolean;
  /** The variables of every chat. */
  private readonly variables: Scope;
  /** The last message at each index of a chat: the renderings of a chat have most messages in common. */
  private readonly values: { message: JsonlMessage; value: Value }[] = [];
  private readonly specialTexts: RegExp | null;
  private readonly rules: ChatRules;

  /** Parses a template. @throws ZerofleetError `chat_template_invalid` */
  constructor(
    source: string,
    { tokens = {}, special_texts = null, date = null, rules = DEFAULT_RULES }: TemplateOptions = {},
  ) {
    const { program, marks } = parseChatTemplate(source);
    this.program = program;
    this.marks = marks;
    this.specialTexts = special_texts;
    this.rules = rules;
    this.variables = templateVariables(tokens, date);
  }

  /**
   * Renders a chat: to one text, or to one for each turn of the assistant.
   * @throws ZerofleetError `chat_template_invalid` when the template fails, ignores a part of the chat or leaves the
   *   learned parts undetermined
   */
  renderAll(chat: JsonlChat): RenderedChat[] {
    if (this.rules.turns === 'together') return [this.render(chat)];
    const { messages } = chat;
    return learnedTurns(chat).map((turn) => {
      const earlier = messages
        .slice(0, turn)
        .map((message) => (message.role === LEARNED_ROLE ? { ...message, weight: 0 as const } : message));
      return this.render({ ...chat, messages: [...earlier, messages[turn] as JsonlMessage] });
    });
  }

  /** Renders a chat to one text. @throws as `renderAll` */
  render(chat: JsonlChat): RenderedChat {
    const rendering = this.fill(chat, false);
    const learned = this.marks ? taggedSpans(chat, rendering) : this.turnSpans(chat, rendering);
    const { reasoning } = this.rules;
    return {
      ...this.literals(rendering),
      learned: reasoning === 'mask' ? rendering.withoutReasoning(learned) : learned,
      missing: this.missingParts(chat, rendering),
    };
  }

  /**
   * Renders a prompt with a completion, which begins at `begin`: with what it adds to the prompt for it. Generation
   * tags have no effect.
   * @throws ZerofleetError as `renderAll`
   */
  renderCompletion(
    prompt: JsonlChat,
    completion: readonly JsonlMessage[],
  ): RenderedText & { begin: number; missing: MissingPart[] } {
    const chat = { ...prompt, messages: [...prompt.messages, ...completion] };
    const rendering = this.fill(chat, false);
    return {
      ...this.literals(rendering),
      begin: this.beginOfTurn(chat, rendering, prompt.messages.length),
      missing: this.missingParts(chat, rendering),
    };
  }

  /** Returns the text that prompts the assistant for its next turn, and the text after such a turn. */
  generationPrompt(
    messages: readonly JsonlMessage[],
    tools: JsonlTools = { tools: null },
  ): RenderedText & { end: string } {
    const chat = { messages, ...tools };
    const answered = [...messages, { role: LEARNED_ROLE, content: 'a' }];
    const after = this.fill({ ...chat, messages: answered }, false);
    const { end = after.text.length } = after.partsOf(messages.length, 'content').at(-1) ?? {};
    const filled = this.fill(chat, true);
    if (tools.tools !== null && this.fill({ ...chat, tools: null }, true).text === filled.text)
      throw invalidTemplate(
        'it does not render the tools of the chat; leave them out, or use another template',
      );
    return { ...this.literals(filled), end: after.text.slice(end) };
  }

  /** Returns how the template writes calls of tools; null if it renders none. */
  shownCalls(): ReturnType<typeof shownCalls> {
    return shownCalls((chat, prompt) => this.fill(chat, prompt).text, this.specialTexts);
  }

  private literals(rendering: Rendering): RenderedText {
    const { specialTexts } = this;
    return { text: rendering.text, literal: specialTexts ? rendering.literalCuts(specialTexts) : [] };
  }

  private turnSpans(chat: JsonlChat, rendering: Rendering): Span[] {
    return learnedTurns(chat).map((turn) => ({
      begin: this.beginOfTurn(chat, rendering, turn),
      end: this.endOfTurn(chat, rendering, turn),
    }));
  }

  /** Returns where an answer begins: behind the prompt for it, or behind the header of its turn. */
  private beginOfTurn(chat: JsonlChat, rendering: Rendering, index: number): number {
    const before = this.promptFor(chat, index);
    if (before !== null && rendering.text.startsWith(before.text)) return before.text.length;
    const turn = rendering.turnOf(index);
    if (turn === null) throw undetermined(index);
    return rendering.headerEnd(index, turn, (before ?? this.fill(chat, true)).tail);
  }

  /**
   * Returns where the next message begins, or where the template writes other messages into the turn. The last message
   * ends with the text.
   */
  private endOfTurn(chat: JsonlChat, rendering: Rendering, index: number): number {
    const { messages } = chat;
    if (index === messages.length - 1) return rendering.text.length;
    const turn = rendering.turnOf(index);
    if (turn !== null && !rendering.hasOthers(index, turn)) return turn.end;
    const alone = this.fill({ ...chat, messages: messages.slice(0, index + 1) }, false);
    if (rendering.text.startsWith(alone.text)) return alone.text.length;
    if (turn === null) throw undetermined(index);
    return rendering.footerEnd(index, alone);
  }

  /** Returns null if the template fails for the messages before a turn. */
  private promptFor(chat: JsonlChat, index: number): Rendering | null {
    try {
      return this.fill({ ...chat, messages: chat.messages.slice(0, index) }, true);
    } catch {
      return null;
    }
  }

  /** @throws ZerofleetError `chat_template_invalid` when the text lacks a part that changes the meaning of others */
  private missingParts(chat: JsonlChat, rendering: Rendering): MissingPart[] {
    const missing: MissingPart[] = [];
    for (const { what, kind, without } of unrendered(chat, rendering)) {
      if (!this.isFilledAs(without, rendering.text)) continue;
      if (kind !== null) missing.push(kind);
      else
        throw invalidTemplate(
          `it does not render ${what} of the chat; use a template that does, or remove that from the data`,
        );
    }
    return [...new Set(missing)];
  }

  /**
   * Returns whether the template renders a reduced chat to the same text. A template that fails uses the removed part.
   */
  private isFilledAs(chat: JsonlChat, text: string): boolean {
    try {
      return this.fill(chat, false).text === text;
    } catch {
      return false;
    }
  }

  private fill(chat: JsonlChat, addGenerationPrompt: boolean): Rendering {
    try {
      return this.run(chat, addGenerationPrompt);
    } catch (error) {
      const { messages } = chat;
      // Some templates search every content for a text, and fail for a call of tools without one.
      if (messages.some(isSilent))
        return this.fill({ ...chat, messages: messages.map(withText) }, addGenerationPrompt);
      throw invalidTemplate(
        `it fails for a chat of ${messages.length} messages: ${(error as Error).message}`,
      );
    }
  }

  /** @throws Error of the template */
  private run({ messages, tools, parallel_tool_calls }: JsonlChat, addGenerationPrompt: boolean): Rendering {
    const scope = newScope(this.variables);
    scope.set('add_generation_prompt', addGenerationPrompt);
    if (parallel_tool_calls !== undefined) scope.set('parallel_tool_calls', parallel_tool_calls);
    const values = messages.map((message, index) => this.valueOf(message, index));
    scope.setVariable('messages', new ArrayValue(values));
    scope.setVariable('tools', asValue(tools, DATA));
    const interpreter = new OriginInterpreter(scope, { begin: LOOP_BEGIN, end: LOOP_END });
    return new Rendering(originsOf(interpreter.run(this.program)));
  }

  private valueOf(message: JsonlMessage, index: number): Value {
    const known = this.values[index];
    if (known?.message === message) return known.value;
    const value = messageValue(templateFields(message), index);
    this.values[index] = { message, value };
    return value;
  }
}

function isSilent({ content }: JsonlMessage): boolean {
  return content === null || content === undefined;
}

function withText(message: JsonlMessage): JsonlMessage {
  return isSilent(message) ? { ...message, content: '' } : message;
}

/** Returns the turns of the assistant that are trained on. */
function learnedTurns({ messages }: JsonlChat): number[] {
  return [...messages.keys()].filter((index) => isLearned(messages[index]));
}

function isLearned(message: JsonlMessage | undefined): boolean {
  return message?.role === LEARNED_ROLE && message.weight !== 0;
}

function taggedSpans({ messages }: JsonlChat, rendering: Rendering): Span[] {
  return rendering
    .tagged()
    .filter(({ message }) => message === null || messages[message]?.weight !== 0)
    .map(({ begin, end }) => ({ begin, end }));
}

function undetermined(index: number) {
  return invalidTemplate(
    `its rendering of the messages before message ${index} changes with later ones, and no loop over messages writes that message, so the assistant's ` +
      'part cannot be determined; put {% generation %} and {% endgeneration %} around that part',
  );
}
