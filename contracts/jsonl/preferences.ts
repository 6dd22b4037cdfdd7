/**
 * Lines with a prompt, a chosen and a rejected completion, as OpenAI (`input`, `preferred_output`,
 * `non_preferred_output`) or TRL (`prompt`, `chosen`, `rejected`) write them.
 */
import {
  checkCompletion,
  checkPrompt,
  type JsonlContent,
  type JsonlPrompt,
  parseCompletion,
  parseContent,
  parsePrompt,
} from './completions.js';
import { NumberText } from './exact-json.js';
import { BadLine, isObject, parseMessages, parseTools } from './fields.js';

export interface JsonlPair extends JsonlPrompt {
  chosen: JsonlContent;
  rejected: JsonlContent;
}

type Fields = Readonly<Record<string, unknown>>;

/** Reads a line with `preferred_output`, as in OpenAI's files for preference fine-tuning. @throws BadLine */
export function parseOutputs({ input, preferred_output, non_preferred_output }: Fields): JsonlPair {
  if (!isObject(input))
    throw new BadLine(
      '"input" must be an object with the "messages" of the prompt, beside "preferred_output"',
    );
  return {
    prompt: checkPrompt(parseMessages(input.messages, '"messages" of "input"')),
    ...parseTools(input, ' of "input"'),
    chosen: parseCompletion(preferred_output, '"preferred_output"'),
    rejected: parseCompletion(non_preferred_output, '"non_preferred_output"'),
  };
}

/** Reads a line with `chosen`, as in datasets for TRL. @throws BadLine */
export function parsePair(line: Fields): JsonlPair {
  const tools = parseTools(line);
  const { prompt, chosen, rejected } = line;
  if (prompt === undefined) return { ...parseImplicit(chosen, rejected), ...tools };
  return {
    prompt: parsePrompt(prompt),
    ...tools,
    chosen: parseContent(chosen, '"chosen"', prompt),
    rejected: parseContent(rejected, '"rejected"', prompt),
  };
}

/** The prompt is what both lists begin with. */
function parseImplicit(
  chosen: unknown,
  rejected: unknown,
): Pick<JsonlPair, 'prompt' | 'chosen' | 'rejected'> {
  if (!Array.isArray(chosen) || !Array.isArray(rejected))
    throw new BadLine(
      '"prompt" is missing; only lists of messages may contain it: "chosen" and "rejected" begin with it then',
    );
  const [good, bad] = [parseMessages(chosen, '"chosen"'), parseMessages(rejected, '"rejected"')];
  const until = good.findIndex((message, i) => !isSame(message, bad[i]));
  const shared = until < 0 ? good.length : until;
  if (shared === 0)
    throw new BadLine(
      '"chosen" and "rejected" begin with different messages, so they contain no prompt; write it as "prompt"',
    );
  return {
    prompt: checkPrompt(good.slice(0, shared)),
    chosen: checkCompletion(good.slice(shared), '"chosen"'),
    rejected: checkCompletion(bad.slice(shared), '"rejected"'),
  };
}

/** Messages are the same with the same fields, in any order. */
function isSame(a: unknown, b: unknown): boolean {
  if (a instanceof NumberText && b instanceof NumberText) return a.text === b.text;
  if (!isObject(a) || !isObject(b)) {
    if (!Array.isArray(a) || !Array.isArray(b)) return a === b;
    return a.length === b.length && a.every((item, i) => isSame(item, b[i]));
  }
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length && names.every((name) => name in b && isSame(a[name], b[name]))
  );
}
