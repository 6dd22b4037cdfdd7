/** One line of a dataset of `format=jsonl`, as checked by the API and read by the workers. */

import { ZerofleetError } from './errors.js';

export type JsonlDocument = { text: string } | JsonlChat;

/** Template input of a chat. */
export interface JsonlChat {
  messages: readonly JsonlMessage[];
  /** Tools of the assistant as JSON schemas; null if the line has none. */
  tools: readonly object[] | null;
}

/** A turn of a chat with all its fields. */
export interface JsonlMessage {
  role: string;
  content?: string | null;
  tool_calls?: readonly object[] | null;
  readonly [field: string]: unknown;
}

/** Maximum line length in bytes. */
export const MAX_LINE_BYTES = 4 * 1024 * 1024;

/** The role whose turns are trained on. */
export const LEARNED_ROLE = 'assistant';

/** Error of a line and its remedy; the message follows "line 17: ". */
export class BadLine extends Error {}

/** The error for an invalid line; lines are numbered from 1. */
export function badLine(line: number, what: string): ZerofleetError {
  return new ZerofleetError('dataset_line_invalid', `line ${line}: ${what}`, { details: { line } });
}

/** Parses a non-blank line: an object with either `text` or `messages`. Other fields are ignored. @throws BadLine */
export function parseLine(line: string): JsonlDocument {
  const value = parseObject(line);
  const has = (name: string) => value[name] !== undefined;
  if (has('text') === has('messages'))
    throw new BadLine(
      `an object must have either "text" or "messages", this one has ${has('text') ? 'both' : 'neither'}; ` +
        `write {"text": "…"} or {"messages": [{"role": "…", "content": "…"}]}`,
    );
  if (has('text')) return { text: nonEmptyText(value.text) };
  return { messages: parseMessages(value.messages), tools: parseObjects(value.tools, '"tools"') };
}

function parseObject(line: string): Record<string, unknown> {
  if (line.startsWith('\uFEFF'))
    throw new BadLine('it begins with a byte order mark; save the file as UTF-8 without one');
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new BadLine(`it is not JSON (${(error as Error).message}); every line must be one whole object`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BadLine('it is JSON, but not an object; write {"text": "…"} or {"messages": […]}');
  return value as Record<string, unknown>;
}

function nonEmptyText(text: unknown): string {
  if (typeof text !== 'string') throw new BadLine('"text" must be a string');
  if (text === '') throw new BadLine('"text" is empty; leave the line out');
  return text;
}

function parseMessages(messages: unknown): JsonlMessage[] {
  if (!Array.isArray(messages)) throw new BadLine('"messages" must be a list');
  const parsed = messages.map(parseMessage);
  if (!parsed.some(({ role }) => role === LEARNED_ROLE))
    throw new BadLine(
      `no message has the role "${LEARNED_ROLE}", so there is nothing to train on; leave the line out`,
    );
  return parsed;
}

function parseMessage(message: unknown, index: number): JsonlMessage {
  const { role, content, tool_calls, ...fields } = (message ?? {}) as Record<string, unknown>;
  const calls = parseObjects(tool_calls, `"tool_calls" of message ${index}`);
  const silent = (content === null || content === undefined) && calls !== null && calls.length > 0;
  if (typeof role !== 'string' || (typeof content !== 'string' && !silent))
    throw new BadLine(
      `message ${index} must have a "role" and a "content", both strings; one with "tool_calls" may have no "content"`,
    );
  return {
    ...fields,
    role,
    ...(content !== undefined && { content: content as string | null }),
    ...(tool_calls !== undefined && { tool_calls: calls }),
  };
}

function parseObjects(value: unknown, what: string): object[] | null {
  if (value === undefined || value === null) return null;
  const isObject = (item: unknown) => typeof item === 'object' && item !== null && !Array.isArray(item);
  if (!Array.isArray(value) || !value.every(isObject)) throw new BadLine(`${what} must be a list of objects`);
  return value;
}
