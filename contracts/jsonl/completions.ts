/**
 * Prompts with completions: the parts of preferences, and lines with a `prompt` and one `completion`, as in datasets
 * for TRL. With a `label` the completion is judged (KTO), without one it is learned.
 */
import {
  BadLine,
  checkLearned,
  type JsonlChat,
  type JsonlMessage,
  type JsonlTools,
  LEARNED_ROLE,
  parseMessages,
  parseTools,
} from './fields.js';

/** A text, or messages of a chat. A prompt and its completions are of the same kind. */
export type JsonlContent = string | readonly JsonlMessage[];

export interface JsonlPrompt extends JsonlTools {
  prompt: JsonlContent;
}

export interface JsonlLabelled extends JsonlPrompt {
  completion: JsonlContent;
  /** True: desirable. */
  label: boolean;
}

/** A text of which only the end is learned. */
export interface JsonlContinued extends JsonlPrompt {
  prompt: string;
  completion: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** Reads a line with `completion`. @throws BadLine */
export function parseCompleted(line: Fields): JsonlLabelled | JsonlContinued | JsonlChat {
  const { prompt, completion, label } = line;
  if (prompt === undefined) throw new BadLine('"prompt" is missing; a "completion" needs a "prompt"');
  if (label === undefined) return parseLearned(line);
  if (typeof label !== 'boolean')
    throw new BadLine(
      '"label" must be true or false: whether the "completion" is desirable; leave it out to learn the "completion"',
    );
  return {
    prompt: parsePrompt(prompt),
    ...parseTools(line),
    completion: parseContent(completion, '"completion"', prompt),
    label,
  };
}

/** The messages of a prompt are those of a chat whose turns have the weight 0. */
function parseLearned(line: Fields): JsonlContinued | JsonlChat {
  const prompt = parsePrompt(line.prompt);
  if (typeof prompt === 'string') {
    const completion = parseText(line.completion, '"completion"');
    if (completion === '') throw new BadLine('"completion" is empty; leave the line out');
    return { prompt, ...parseTools(line), completion };
  }
  const completion = checkBegin(parseMessages(line.completion, '"completion"'), '"completion"');
  checkLearned(completion);
  const before = prompt.map((message) =>
    message.role === LEARNED_ROLE ? { ...message, weight: 0 as const } : message,
  );
  return { messages: [...before, ...completion], ...parseTools(line) };
}

export function parsePrompt(prompt: unknown): JsonlContent {
  if (typeof prompt === 'string') return prompt;
  if (!Array.isArray(prompt)) throw new BadLine('"prompt" must be a string or a list of messages');
  return checkPrompt(parseMessages(prompt, '"prompt"'));
}

/** @param prompt the completion is of the same kind */
export function parseContent(value: unknown, name: string, prompt: unknown): JsonlContent {
  return typeof prompt === 'string' ? parseText(value, name) : parseCompletion(value, name);
}

function parseText(value: unknown, name: string): string {
  if (typeof value !== 'string') throw new BadLine(`${name} must be a string, because "prompt" is one`);
  return value;
}

export function parseCompletion(value: unknown, name: string): JsonlMessage[] {
  return checkCompletion(parseMessages(value, name), name);
}

export function checkPrompt(messages: JsonlMessage[]): JsonlMessage[] {
  const last = messages.at(-1);
  if (last === undefined) throw new BadLine('the prompt has no messages');
  if (last.role === LEARNED_ROLE)
    throw new BadLine(
      `the prompt ends with a message of the role "${LEARNED_ROLE}"; put this message at the beginning of the completions`,
    );
  return messages;
}

export function checkCompletion(messages: JsonlMessage[], name: string): JsonlMessage[] {
  if (messages.some(({ weight }) => weight === 0))
    throw new BadLine(
      `a message of ${name} has "weight": 0, and a completion is trained on as a whole; leave "weight" out`,
    );
  return checkBegin(messages, name);
}

function checkBegin(messages: JsonlMessage[], name: string): JsonlMessage[] {
  if (messages[0]?.role === LEARNED_ROLE) return messages;
  throw new BadLine(
    `${name} must begin with a message of the role "${LEARNED_ROLE}" after the prompt; ` +
      (messages.length === 0 ? 'it has none' : `this one has the role "${messages[0]?.role}"`),
  );
}
