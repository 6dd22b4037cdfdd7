import { ZerofleetError } from '../../contracts/index.js';
import { type Program, parseSource } from '../template/library.js';

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
  const marks = /\{%-?\s*generation\s*-?%\}/.test(source);
  try {
    return { program: parseSource(withMarks(source)), marks };
  } catch (error) {
    throw invalidTemplate(`it cannot be read: ${(error as Error).message}`);
  }
}

export function invalidTemplate(reason: string): ZerofleetError {
  return new ZerofleetError('chat_template_invalid', `the chat template cannot be used: ${reason}`);
}

/** Variables that mark the positions of generation tags. */
export const LEARN_BEGIN_VARIABLE = 'zerofleet_learn_begin';
export const LEARN_END_VARIABLE = 'zerofleet_learn_end';

/** Replaces generation tags by blocks that mark these positions, with the same white space control. */
function withMarks(source: string): string {
  return source.replace(
    /\{%(-?)\s*(end)?generation\s*(-?)%\}/g,
    (_, before: string, end: string | undefined, after: string) =>
      `{%${before} if true %}{{ ${end ? LEARN_END_VARIABLE : LEARN_BEGIN_VARIABLE} }}{% endif ${after}%}`,
  );
}
