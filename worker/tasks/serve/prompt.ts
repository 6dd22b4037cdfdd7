import { type SampleTask, ZerofleetError } from '../../../contracts/index.js';
import { ChatTemplate } from '../../../formats/encoding/chat-template.js';
import type { TextRules } from '../../../formats/encoding/encode-batch.js';
import type { PromptTokenizer } from '../../../formats/encoding/prompt-tokenizer.js';
import { endToken } from '../../../formats/encoding/stop-tokens.js';
import type { DecoderTable } from '../../../formats/tokenizer/token-decoder.js';

/** Characters of `end_text`. It is bounded because every token of an answer is compared with it. */
const MAX_END_TEXT = 256;

export interface PromptSetup extends TextRules {
  /** Largest number of tokens in a prompt and its answer together. */
  max_length: number;
}

/** What decodes answers. */
export interface Decoding {
  vocab_size: number;
  /** Null: each token is a byte. */
  table: DecoderTable | null;
}

/** Prompt of a sample. */
export interface SamplePrompt {
  text: string;
  tokens: number[];
  /** Token that ends the answer; null if there is none. */
  end_token: number | null;
  /** Text that ends the answer; empty if there is none. */
  end_text: string;
}

/**
 * Builds the prompt: the beginning of a document, or messages rendered by the chat template.
 * @throws ZerofleetError `chat_template_invalid`; `tokenizer_invalid` when the prompt has no token; `prompt_too_long`
 */
export function buildPrompt(
  tokenizer: PromptTokenizer,
  { prompt = '', messages }: Pick<SampleTask, 'prompt' | 'messages'>,
  {
    chat_template,
    template_date,
    max_length,
  }: Pick<PromptSetup, 'chat_template' | 'template_date' | 'max_length'>,
): SamplePrompt {
  const { variables: tokens, special_texts } = tokenizer;
  const options = { tokens, special_texts, date: template_date };
  const built = messages
    ? chatPrompt(tokenizer, messages, new ChatTemplate(chat_template ?? '', options))
    : { text: prompt, tokens: tokenizer.encodePrompt(prompt), end_token: tokenizer.end, end_text: '' };
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
  messages: NonNullable<SampleTask['messages']>,
  template: ChatTemplate,
): SamplePrompt {
  const { end, ...rendered } = template.generationPrompt(messages);
  const tokens = tokenizer.encodeChat(rendered);
  const end_text = end.trim().slice(0, MAX_END_TEXT);
  return { text: rendered.text, tokens, end_token: endToken(tokenizer, end_text) ?? tokenizer.end, end_text };
}
