/**
 * Lines of preferences in one of two forms:
 * - a prompt with a chosen and a rejected completion, as OpenAI (`input`, `preferred_output`, `non_preferred_output`)
 *   or TRL (`prompt`, `chosen`, `rejected`) write them;
 * - a prompt with one completion and its label (`prompt`, `completion`, `label`).
 */
import { NumberText } from './exact-json.js';
import {
  BadLine,
  isObject,
  type JsonlMessage,
  type JsonlTools,
  LEARNED_ROLE,
  parseMessages,
  parseTools,
} from './fields.js';

/** A text, or messages of a chat. A prompt and its completions are of the same kind. */
export type JsonlContent = string | readonly JsonlMessage[];

interface JsonlPrompt extends JsonlTools {
  prompt: JsonlContent;
}

export interface JsonlPair extends JsonlPrompt {
  chosen: JsonlContent;
  rejected: JsonlContent;
}

export interface JsonlLabelled extends JsonlPrompt {
  completion: JsonlContent;
  /** True: desirable. */
  label: boolean;
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

/** Reads a line with `completion`, as in datasets for KTO. @throws BadLine */
export function parseLabelled(line: Fields): JsonlLabelled {
  const { prompt, completion, label } = line;
  if (prompt === undefined) throw new BadLine('"prompt" is missing; a "completion" needs a "prompt"');
  if (typeof label !== 'boolean')
    throw new BadLine('"label" must be true or false: whether the "completion" is desirable');
  return {
    prompt: parsePrompt(prompt),
    ...parseTools(line),
    completion: parseContent(completion, '"completion"', prompt),
    label,
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

function parsePrompt(prompt: unknown): JsonlContent {
  if (typeof prompt === 'string') return prompt;
  if (!Array.isArray(prompt)) throw new BadLine('"prompt" must be a string or a list of messages');
  return checkPrompt(parseMessages(prompt, '"prompt"'));
}

/** @param prompt the completion is of the same kind */
function parseContent(value: unknown, name: string, prompt: unknown): JsonlContent {
  if (typeof prompt !== 'string') return parseCompletion(value, name);
  if (typeof value !== 'string') throw new BadLine(`${name} must be a string, because "prompt" is one`);
  return value;
}

function parseCompletion(value: unknown, name: string): JsonlMessage[] {
  return checkCompletion(parseMessages(value, name), name);
}

function checkPrompt(messages: JsonlMessage[]): JsonlMessage[] {
  const last = messages.at(-1);
  if (last === undefined) throw new BadLine('the prompt has no messages');
  if (last.role === LEARNED_ROLE)
    throw new BadLine(
      `the prompt ends with a message of the role "${LEARNED_ROLE}"; put this message at the beginning of the completions`,
    );
  return messages;
}

function checkCompletion(messages: JsonlMessage[], name: string): JsonlMessage[] {
  if (messages.some(({ weight }) => weight === 0))
    throw new BadLine(
      `a message of ${name} has "weight": 0, and a completion is trained on as a whole; leave "weight" out`,
    );
  if (messages[0]?.role === LEARNED_ROLE) return messages;
  throw new BadLine(
    `${name} must begin with a message of the role "${LEARNED_ROLE}" after the prompt; ` +
      (messages.length === 0 ? 'it has none' : `this one has the role "${messages[0]?.role}"`),
  );
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
