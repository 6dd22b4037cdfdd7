/** Fields of a line of JSONL that several kinds of documents have. */

/** A turn of a chat with all its fields. */
export interface JsonlMessage {
  role: string;
  content?: string | null;
  tool_calls?: readonly object[] | null;
  readonly [field: string]: unknown;
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
  const { role, content, tool_calls, ...fields } = (message ?? {}) as Record<string, unknown>;
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
  };
}

/** Returns null for an absent list. @throws BadLine */
export function parseObjects(value: unknown, what: string): object[] | null {
  if (value === undefined || value === null) return null;
  if (!Array.isArray(value) || !value.every(isObject)) throw new BadLine(`${what} must be a list of objects`);
  return value;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
