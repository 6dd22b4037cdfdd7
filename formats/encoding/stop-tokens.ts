import { ZerofleetError } from '../../contracts/index.js';
import type { ChatTemplate } from './chat-template.js';
import type { PromptTokenizer } from './prompt-tokenizer.js';

/**
 * Returns the tokens at which an answer ends: the end of a document, and with a template the special token that it
 * writes behind a turn.
 */
export function stopTokens(tokenizer: PromptTokenizer, template: ChatTemplate | null): number[] {
  const found = [tokenizer.end, template && turnEnd(tokenizer, template)];
  return [...new Set(found.filter((token) => token !== null))];
}

/**
 * Returns the token with which the text behind a turn begins if it is a special token, which has no text; otherwise
 * null.
 */
export function endToken(tokenizer: PromptTokenizer, endText: string): number | null {
  const [first] = endText === '' ? [] : tokenizer.encodeChat({ text: endText, literal: [] });
  return first !== undefined && tokenizer.decodeAfter([], [first]) === '' ? first : null;
}

/**
 * Returns null for a template that ends a turn with a plain text, or with nothing, and for one that needs other
 * messages than these.
 */
function turnEnd(tokenizer: PromptTokenizer, template: ChatTemplate): number | null {
  try {
    const { end } = template.generationPrompt([{ role: 'user', content: 'a' }]);
    return endToken(tokenizer, end.trim());
  } catch (error) {
    if (error instanceof ZerofleetError) return null;
    throw error;
  }
}
