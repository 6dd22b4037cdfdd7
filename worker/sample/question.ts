import { type ResolvedJobSpec, type SampleTask, ZerofleetError } from '../../contracts/index.js';
import { ChatTemplate } from '../encoding/chat-template.js';
import type { PromptTokenizer } from '../encoding/prompt-tokenizer.js';

/** What a model is to go on with. */
export interface Question {
  text: string;
  tokens: number[];
  /** The token that ends the answer; null where none does. */
  end_token: number | null;
  /** A text with which the answer ends; empty where none does. */
  end_text: string;
}

/**
 * The beginning of a document, or what a chat template makes of messages.
 * @throws ZerofleetError `chat_template_invalid`; `tokenizer_invalid` when no token comes of it
 */
export function questionOf(
  tokenizer: PromptTokenizer,
  { prompt = '', messages }: Pick<SampleTask, 'prompt' | 'messages'>,
  { chat_template, template_date }: Pick<ResolvedJobSpec['data'], 'chat_template' | 'template_date'>,
): Question {
  const { variables: tokens, special_texts } = tokenizer;
  const options = { tokens, special_texts, date: template_date };
  const question = messages
    ? chatOf(tokenizer, messages, new ChatTemplate(chat_template ?? '', options))
    : { text: prompt, tokens: tokenizer.encodePrompt(prompt), end_token: tokenizer.end, end_text: '' };
  if (question.tokens.length > 0) return question;
  throw new ZerofleetError(
    'tokenizer_invalid',
    'the tokenizer makes no token of the prompt; give another one',
  );
}

/** A turn ends with a special token, which no text shows, or with a text of the template. */
function chatOf(
  tokenizer: PromptTokenizer,
  messages: NonNullable<SampleTask['messages']>,
  template: ChatTemplate,
): Question {
  const { end, ...asked } = template.ask(messages);
  const tokens = tokenizer.encodeChat(asked);
  const end_text = end.trim();
  const [first] = end_text === '' ? [] : tokenizer.encodeChat({ text: end_text, literal: [] });
  const isSpecial = first !== undefined && tokenizer.decodeAfter(tokens, [first]) === '';
  return { text: asked.text, tokens, end_token: isSpecial ? first : tokenizer.end, end_text };
}
