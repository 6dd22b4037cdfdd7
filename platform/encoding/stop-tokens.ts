import { ZerofleetError } from '../../contracts/index.js';
import type { ChatTemplate } from './chat-template.js';
import type { PromptTokenizer } from './prompt-tokenizer.js';

/** Returns the tokens at which an answer ends: the end of a document, and with a template the special token that it writes behind a turn. */
export function stopTokens(tokenizer: PromptTokenizer, template: ChatTemplate | null): number[] {
  const found = [tokenizer.end, template && turnEnd(tokenizer, template)];
  return [...new Set(found.filter((token) => token !== null))];
}

/** Returns null for a template that ends a turn with a plain text, or with nothing, and for one that needs other messages than these. */
function turnEnd(tokenizer: PromptTokenizer, template: ChatTemplate): number | null {
  try {
    const { end } = template.generationPrompt([{ role: 'user', content: 'a' }]);
    const [first] = tokenizer.encodeChat({ text: end.trim(), literal: [] });
    return first !== undefined && tokenizer.decodeAfter([], [first]) === '' ? first : null;
  } catch (error) {
    if (error instanceof ZerofleetError) return null;
    throw error;
  }
}
