import { Template } from '@huggingface/jinja';
import { ZerofleetError } from '../../contracts/index.js';

/** Around what a template marks as generated. Unicode keeps these from being characters of any text. */
export const BEGIN_MARK = '\ufdd0';
export const END_MARK = '\ufdd1';

/** The variable that has the function `strftime_now`; undefined where a template has none. */
export const DATE_FUNCTION = 'zerofleet_strftime_now';
/** The library's own function tells the time at which it is called. The newline belongs to the tag, and no text comes of it. */
const OWN_DATE = `{% set strftime_now = ${DATE_FUNCTION} %}\n`;

export interface ParsedTemplate {
  template: Template;
  /** Whether it marks what the assistant generates, with `{% generation %}` tags; BEGIN_MARK and END_MARK are written for them. */
  marks: boolean;
}

/**
 * Reads a chat template as Hugging Face tokenizers have them (Jinja).
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

export function invalidTemplate(what: string): ZerofleetError {
  return new ZerofleetError('chat_template_invalid', `the chat template cannot be used: ${what}`);
}

/** The tags of generation as blocks that write the marks, with the same control of white space around them. */
function withMarks(source: string): string {
  return source.replace(
    /\{%(-?)\s*(end)?generation\s*(-?)%\}/g,
    (_, before: string, end: string | undefined, after: string) =>
      `{%${before} if true %}{{ '${end ? END_MARK : BEGIN_MARK}' }}{% endif ${after}%}`,
  );
}
