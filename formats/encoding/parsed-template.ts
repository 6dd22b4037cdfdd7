import { ZerofleetError } from '../../contracts/index.js';
import { parseProgram } from '../template/interpreter.js';
import type { Program } from '../template/library.js';
import { MARK, placeMark } from '../template/origin-text.js';
import { LEARN_BEGIN, LEARN_END } from './chat-origins.js';

interface ParsedTemplate {
  program: Program;
  /** True if the template marks what the assistant generates with `{% generation %}` tags. */
  marks: boolean;
}

/**
 * Parses a chat template of a Hugging Face tokenizer (Jinja).
 * @throws ZerofleetError `chat_template_invalid`
 */
export function parseChatTemplate(source: string): ParsedTemplate {
  if (source.includes(MARK)) throw invalidTemplate('it has the character U+FDD0');
  const marks = /\{%-?\s*generation\s*-?%\}/.test(source);
  try {
    return { program: parseProgram(withMarks(source)), marks };
  } catch (error) {
    throw invalidTemplate(`it cannot be read: ${(error as Error).message}`);
  }
}

export function invalidTemplate(reason: string): ZerofleetError {
  return new ZerofleetError('chat_template_invalid', `the chat template cannot be used: ${reason}`);
}

/** Replaces generation tags by blocks that mark these places, with the same white space control. */
function withMarks(source: string): string {
  return source.replace(
    /\{%(-?)\s*(end)?generation\s*(-?)%\}/g,
    (_, before: string, end: string | undefined, after: string) =>
      `{%${before} if true %}${placeMark(end ? LEARN_END : LEARN_BEGIN)}{% endif ${after}%}`,
  );
}
