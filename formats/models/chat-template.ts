import { Template } from '@huggingface/jinja';
import { ZerofleetError } from '../../contracts/index.js';

/**
 * Markers around generated parts of a template. Unicode defines them as noncharacters, so no text contains
 * them.
 */
export const BEGIN_MARK = '\ufdd0';
export const END_MARK = '\ufdd1';

/** Variable with the function `strftime_now`; undefined for a template that does not use it. */
export const DATE_FUNCTION = 'zerofleet_strftime_now';
/**
 * The library's own function returns the time of the call. The newline belongs to the tag and adds no text.
 */
const OWN_DATE = `{% set strftime_now = ${DATE_FUNCTION} %}\n`;

interface ParsedTemplate {
  template: Template;
  /**
   * True if the template marks what the assistant generates with `{% generation %}` tags, which become
   * BEGIN_MARK and END_MARK.
   */
  marks: boolean;
}

/**
 * Parses a chat template of a Hugging Face tokenizer (Jinja).
 * @throws ZerofleetError `chat_template_invalid`
 */
export function parseChatTemplate(source: string): ParsedTemplate {
  const marks = /\{%-?\s*generation\s*-?%\}/.test(source);
  try {
    return { template: new Template(OWN_DATE + withMarks(source)), marks };
  } catch (error) {
    throw invalidTemplate(`it cannot be read: ${(error as Error).message}`);
  }
}

export function invalidTemplate(reason: string): ZerofleetError {
  return new ZerofleetError('chat_template_invalid', `the chat template cannot be used: ${reason}`);
}

/** Replaces generation tags by blocks that write the markers, with the same white space control. */
function withMarks(source: string): string {
  return source.replace(
    /\{%(-?)\s*(end)?generation\s*(-?)%\}/g,
    (_, before: string, end: string | undefined, after: string) =>
      `{%${before} if true %}{{ '${end ? END_MARK : BEGIN_MARK}' }}{% endif ${after}%}`,
  );
}
