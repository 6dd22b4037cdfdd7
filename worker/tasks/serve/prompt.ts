import { type CallFormat, type PromptRequest, ZerofleetError } from '../../../contracts/index.js';
import { type JsonlMessage, parseMessages, parseTools } from '../../../contracts/jsonl/fields.js';
import type { JsonlChat } from '../../../contracts/jsonl/line.js';
import { ChatTemplate, type RenderedText } from '../../../formats/encoding/chat-template.js';
import type { TextRules } from '../../../formats/encoding/encode-batch.js';
import type { PromptTokenizer } from '../../../formats/encoding/prompt-tokenizer.js';
import { endToken } from '../../../formats/encoding/stop-tokens.js';
import type { Constraint } from '../../../formats/json-grammar/constraint.js';
import { requiredSchemas } from '../../../formats/json-grammar/required-schemas.js';
import type { DecoderTable } from '../../../formats/tokenizer/token-decoder.js';

/** Characters of `end_text`. It is bounded because every token of an answer is compared with it. */
const MAX_END_TEXT = 256;

export interface PromptSetup extends TextRules {
  /** Largest number of tokens in a prompt and its answer together. */
  max_length: number;
}

/** Decodes the tokens of answers. */
export interface Decoding {
  vocab_size: number;
  /** Null: each token is a byte. */
  table: DecoderTable | null;
}

/** Prompt of a sample. */
export interface SamplePrompt {
  text: string;
  tokens: number[];
  /** Tokens that end the answer. */
  end_tokens: number[];
  /** Text that ends the answer; empty if there is none. */
  end_text: string;
  /** How the answer has calls; null: it has none. */
  call_format: CallFormat | null;
  /** Constraint on the answer, which ends when it is complete; null: any text. */
  constraint: Constraint | null;
}

/**
 * Builds the prompt: the beginning of a document, or messages rendered by the chat template.
 * @throws ZerofleetError `chat_template_invalid`; `tokenizer_invalid` when the prompt has no token; `prompt_too_long`
 */
export function buildPrompt(
  tokenizer: PromptTokenizer,
  request: PromptRequest,
  {
    chat_template,
    template_date,
    max_length,
  }: Pick<PromptSetup, 'chat_template' | 'template_date' | 'max_length'>,
): SamplePrompt {
  const { variables: tokens, specialTexts } = tokenizer;
  const options = { tokens, special_texts: specialTexts, date: template_date };
  const { prompt = '', messages } = request;
  const built = messages
    ? chatPrompt(tokenizer, request, new ChatTemplate(request.chat_template ?? chat_template ?? '', options))
    : {
        text: prompt,
        tokens: tokenizer.encodePrompt(prompt),
        end_tokens: listOf(tokenizer.end),
        end_text: '',
        call_format: null,
        constraint: constraintOf(request, () => null),
      };
  const { length } = built.tokens;
  if (length >= max_length)
    throw new ZerofleetError(
      'prompt_too_long',
      `the prompt has ${length} tokens; prompt and answer together may have at most ${max_length}`,
    );
  if (length > 0) return built;
  throw new ZerofleetError(
    'tokenizer_invalid',
    'the prompt has no token with this tokenizer; use another prompt',
  );
}

/**
 * Builds the prompt of a chat. An answer ends with a special token, which has no text, or with a text of the template.
 */
function chatPrompt(
  tokenizer: PromptTokenizer,
  request: PromptRequest,
  template: ChatTemplate,
): SamplePrompt {
  const { messages, ...tools } = chatOf(request);
  const { end, ...rendered } = template.generationPrompt(messages, tools);
  const tokens = tokenizer.encodeChat(rendered);
  const endText = end.trim().slice(0, MAX_END_TEXT);
  const calls = tools.tools === null ? null : template.shownCalls();
  const endTokens = listOf(endToken(tokenizer, endText) ?? tokenizer.end);
  if (calls !== null) endTokens.push(...listOf(lastToken(tokenizer, calls.after)));
  return {
    text: rendered.text,
    tokens,
    end_tokens: [...new Set(endTokens)],
    end_text: endText,
    call_format: calls?.format ?? null,
    constraint: constraintOf(request, (name) => {
      const head = calls?.head?.(name).trimEnd();
      return head === undefined ? null : tokensBehind(tokenizer, { ...rendered, tokens }, head);
    }),
  };
}

/**
 * Returns what an answer must be.
 * @param headOf returns the tokens of a call before the arguments; null if the template shows no call
 * @throws ZerofleetError `chat_template_invalid`
 */
function constraintOf(request: PromptRequest, headOf: (name: string) => number[] | null): Constraint | null {
  const schemas = requiredSchemas(request);
  if (schemas.length === 0) return null;
  const choices = schemas.map(({ name, schema }) => {
    const head = name === null ? [] : headOf(name);
    if (head !== null) return { head, schema: JSON.stringify(schema) };
    throw new ZerofleetError(
      'chat_template_invalid',
      'the chat template does not show how the model writes a call before its arguments, so no call can be required: set tool_choice to auto, or use another template',
    );
  });
  return { choices };
}

/** Returns the tokens of a text that follows a prompt. */
function tokensBehind(
  tokenizer: PromptTokenizer,
  { text, literal, tokens }: RenderedText & { tokens: readonly number[] },
  added: string,
): number[] {
  const all = tokenizer.encodeChat({ text: text + added, literal });
  const isPrefix = tokens.every((token, at) => all[at] === token);
  return isPrefix ? all.slice(tokens.length) : tokenizer.encodeChat({ text: added, literal: [] });
}

/** Returns the chat of a request as templates get it. @throws ZerofleetError `validation_failed` */
function chatOf({ messages, tools, tool_choice, parallel_tool_calls }: PromptRequest): JsonlChat {
  return {
    messages: parseMessages(messages, '"messages"').map(withoutNulls),
    ...parseTools({ tools: tool_choice !== 'none' && tools?.length ? tools : null, parallel_tool_calls }),
  };
}

/** A field that is null is none, except an absent text. */
function withoutNulls(message: JsonlMessage): JsonlMessage {
  const fields = Object.entries(message).filter(([name, value]) => value !== null || name === 'content');
  return { ...Object.fromEntries(fields), role: message.role };
}

/** Returns the special token that a text ends with. */
function lastToken(tokenizer: PromptTokenizer, text: string): number | null {
  const last = tokenizer.specialTexts && text.match(tokenizer.specialTexts)?.at(-1);
  return last ? endToken(tokenizer, last) : null;
}

function listOf(token: number | null): number[] {
  return token === null ? [] : [token];
}
