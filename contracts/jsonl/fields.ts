/** Fields of a line of JSONL that several kinds of documents have. */

import { NumberText } from './exact-json.js';

type Fields = Readonly<Record<string, unknown>>;

/** A turn of a chat with all its fields. */
export interface JsonlMessage {
  role: string;
  content?: string | null;
  tool_calls?: readonly object[] | null;
  /** 0: a turn of the assistant that is not trained on. */
  weight?: 0 | 1;
  readonly [field: string]: unknown;
}

export interface JsonlTools {
  /** Tools of the assistant as JSON schemas; null if the line has none. */
  tools: readonly object[] | null;
}

/** The role whose turns are trained on. */
export const LEARNED_ROLE = 'assistant';

/** Error of a line and its remedy; the message follows "line 17: ". */
export class BadLine extends Error {}

/** @param name the field in messages, such as `"messages"` @throws BadLine */
export function parseMessages(messages: unknown, name: string): JsonlMessage[] {
  if (!Array.isArray(messages)) throw new BadLine(`${name} must be a list`);
  return messages.map((message, index) => parseMessage(message, placeOf(index, name)));
}

/** Messages of a chat are named by their number alone. */
function placeOf(index: number, name: string): string {
  return name === '"messages"' ? `message ${index}` : `message ${index} of ${name}`;
}

function parseMessage(message: unknown, place: string): JsonlMessage {
  const { role, content, weight, ...others } = currentFields((message ?? {}) as Fields, place);
  const { tool_calls, ...fields } = others;
  const calls = parseObjects(tool_calls, `"tool_calls" of ${place}`);
  const silent = (content === null || content === undefined) && calls !== null && calls.length > 0;
  if (typeof role !== 'string' || (typeof content !== 'string' && !silent))
    throw new BadLine(
      `${place} must have a "role" and a "content", both strings; one with "tool_calls" may have no "content"`,
    );
  return {
    ...fields,
    role,
    ...(content !== undefined && { content: content as string | null }),
    ...(tool_calls !== undefined && { tool_calls: calls }),
    ...parseWeight(weight, role, place),
  };
}

/**
 * Returns a message in which a `function_call` is one of `tool_calls`, and its result a message of the role `tool`.
 * @throws BadLine
 */
function currentFields({ function_call: called, ...fields }: Fields, place: string): Fields {
  const role = fields.role === 'function' ? 'tool' : fields.role;
  if (called === undefined || called === null) return { ...fields, role };
  if (!isObject(called)) throw new BadLine(`"function_call" of ${place} must be an object`);
  if (fields.tool_calls !== undefined && fields.tool_calls !== null)
    throw new BadLine(`${place} must have "tool_calls" or "function_call", not both`);
  return { ...fields, role, tool_calls: [{ type: 'function', function: called }] };
}

/** @throws BadLine for a weight that cannot be honoured */
function parseWeight(weight: unknown, role: string, place: string): Pick<JsonlMessage, 'weight'> {
  if (weight === undefined || weight === null) return {};
  const value = weight instanceof NumberText ? Number(weight.text) : weight;
  if (value === 0 || (value === 1 && role === LEARNED_ROLE)) return { weight: value };
  if (value !== 1)
    throw new BadLine(`"weight" of ${place} must be 0 or 1: whether the message is trained on`);
  throw new BadLine(
    `${place} has "weight": 1 and the role "${role}", and only messages of the role "${LEARNED_ROLE}" are trained on; leave "weight" out`,
  );
}

/**
 * Reads the tools of a line, or of an object in it; `functions` is their former name in OpenAI's files.
 * @param of behind the names in messages, such as ` of "input"`
 * @throws BadLine
 */
export function parseTools({ tools, functions }: Fields, of = ''): JsonlTools {
  const given = parseObjects(tools, `"tools"${of}`);
  const former = parseObjects(functions, `"functions"${of}`);
  if (former === null) return { tools: given };
  if (given !== null) throw new BadLine(`write "tools" or "functions"${of}, not both`);
  return { tools: former.map((each) => ({ type: 'function', function: each })) };
}

/** Returns null for an absent list. @throws BadLine */
function parseObjects(value: unknown, what: string): object[] | null {
  if (value === undefined || value === null) return null;
  if (!Array.isArray(value) || !value.every(isObject)) throw new BadLine(`${what} must be a list of objects`);
  return value;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof NumberText)
  );
}
