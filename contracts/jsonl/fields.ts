/**
 * Lists of messages with their tools, as lines of JSONL and requests for answers have them. The forms of hosted APIs
 * become the one that chat templates read.
 */

import { hasUnpairedSurrogate, NumberText, parseUnambiguously, RepeatedName } from './exact-json.js';

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
  /** Whether the assistant may call several tools at once; absent if the line does not say it. */
  parallel_tool_calls?: boolean;
}

/** Template input of a chat. */
export interface JsonlChat extends JsonlTools {
  messages: readonly JsonlMessage[];
}

/** The role whose turns are trained on. */
export const LEARNED_ROLE = 'assistant';

/** Error of a line and its remedy; the message follows "line 17: ". */
export class BadLine extends Error {
  /** @param messageIndex the message of a list that is wrong */
  constructor(
    message: string,
    readonly messageIndex: number | null = null,
  ) {
    super(message);
  }
}

/** Message for a text that `hasUnpairedSurrogate`. */
export const UNPAIRED_SURROGATE =
  'it has an unpaired surrogate, such as \\ud800 alone, which is not a character; leave it out, or write the whole character';

/** @param name the field in messages, such as `"messages"` @throws BadLine */
export function parseMessages(messages: unknown, name: string): JsonlMessage[] {
  if (!Array.isArray(messages)) throw new BadLine(`${name} must be a list`);
  return messages.map((message, index) => {
    try {
      return parseMessage(message, pathOf(index, name));
    } catch (error) {
      throw error instanceof BadLine ? new BadLine(error.message, index) : error;
    }
  });
}

/** Messages of a chat are named by their number alone. */
function pathOf(index: number, name: string): string {
  return name === '"messages"' ? `message ${index}` : `message ${index} of ${name}`;
}

function parseMessage(message: unknown, path: string): JsonlMessage {
  if (!isObject(message)) throw new BadLine(`${path} must be an object with a "role" and a "content"`);
  const { role, content, weight, ...others } = currentFields(message, path);
  const { tool_calls, ...fields } = others;
  if (typeof role !== 'string') throw new BadLine(`"role" of ${path} must be a string`);
  const calls = parseCalls(tool_calls, path);
  const text = parseText(content, path, calls !== null && calls.length > 0);
  return {
    ...fields,
    role,
    ...(text !== undefined && { content: text }),
    ...(tool_calls !== undefined && { tool_calls: calls }),
    ...parseWeight(weight, role, path),
  };
}

/**
 * Reads `content`: a text, or a list of parts of the type `text`, whose texts are joined.
 * @param mayBeSilent true for a message that may have none
 */
function parseText(content: unknown, path: string, mayBeSilent: boolean): string | null | undefined {
  if (typeof content === 'string') return content;
  if (Array.isArray(content))
    return content.map((part, index) => parsePart(part, `part ${index} of "content" of ${path}`)).join('');
  if (mayBeSilent && (content === null || content === undefined)) return content;
  throw new BadLine(
    `"content" of ${path} must be a string or a list of parts {"type": "text", "text": "…"}; it may be null or absent beside "tool_calls"`,
  );
}

function parsePart(part: unknown, path: string): string {
  if (!isObject(part)) throw new BadLine(`${path} must be an object {"type": "text", "text": "…"}`);
  if (part.type !== 'text')
    throw new BadLine(
      `${path} has the type ${JSON.stringify(part.type) ?? 'undefined'}, and only "text" is supported; leave it out`,
    );
  if (typeof part.text !== 'string') throw new BadLine(`"text" of ${path} must be a string`);
  return part.text;
}

/** Reads the calls of tools, with their arguments as objects. */
function parseCalls(calls: unknown, path: string): object[] | null {
  const found = parseObjects(calls, `"tool_calls" of ${path}`);
  return found?.map((call, index) => parseCall(call as Fields, `tool_calls[${index}] of ${path}`)) ?? null;
}

/** Reads a call: an object `function`, as hosted APIs have it, or its fields themselves. */
function parseCall(call: Fields, path: string): object {
  const { function: called } = call;
  if (called === undefined) return withArguments(call, path);
  if (!isObject(called)) throw new BadLine(`"function" of ${path} must be an object`);
  return { ...call, function: withArguments(called, `function of ${path}`) };
}

function withArguments(called: Fields, path: string): Fields {
  const { arguments: given } = called;
  if (given === undefined || isObject(given)) return called;
  const what = `"arguments" of ${path} must be a JSON object, or its text`;
  if (typeof given !== 'string') throw new BadLine(what);
  return { ...called, arguments: parseArguments(given, what) };
}

function parseArguments(text: string, what: string): object {
  let value: unknown;
  try {
    value = parseUnambiguously(text);
  } catch (error) {
    if (error instanceof RepeatedName) throw new BadLine(`${what}: ${error.message}`);
    throw new BadLine(`${what}; this text is no JSON (${(error as Error).message})`);
  }
  if (!isObject(value)) throw new BadLine(`${what}; this text is JSON, but not an object`);
  if (hasUnpairedSurrogate(text, value)) throw new BadLine(`${what}; ${UNPAIRED_SURROGATE}`);
  return value;
}

/**
 * Returns a message in which a `function_call` is one of `tool_calls`, and its result a message of the role `tool`.
 * @throws BadLine
 */
function currentFields({ function_call: called, ...fields }: Fields, path: string): Fields {
  const role = fields.role === 'function' ? 'tool' : fields.role;
  if (called === undefined || called === null) return { ...fields, role };
  if (!isObject(called)) throw new BadLine(`"function_call" of ${path} must be an object`);
  if (fields.tool_calls !== undefined && fields.tool_calls !== null)
    throw new BadLine(`${path} must have "tool_calls" or "function_call", not both`);
  return { ...fields, role, tool_calls: [{ type: 'function', function: called }] };
}

/** @throws BadLine for a weight that cannot be honoured */
function parseWeight(weight: unknown, role: string, path: string): Pick<JsonlMessage, 'weight'> {
  if (weight === undefined || weight === null) return {};
  const value = weight instanceof NumberText ? Number(weight.text) : weight;
  if (value !== 0 && value !== 1)
    throw new BadLine(`"weight" of ${path} must be 0 or 1: whether the message is trained on`);
  if (role === LEARNED_ROLE) return { weight: value };
  throw new BadLine(
    `${path} has a "weight" and the role "${role}", and only messages of the role "${LEARNED_ROLE}" are trained on; leave "weight" out`,
  );
}

/** @throws BadLine unless some turn of the assistant is trained on */
export function checkLearned(messages: readonly JsonlMessage[]): void {
  const answers = messages.filter(({ role }) => role === LEARNED_ROLE);
  if (answers.some(({ weight }) => weight !== 0)) return;
  const what =
    answers.length === 0
      ? `no message has the role "${LEARNED_ROLE}"`
      : `every message of the role "${LEARNED_ROLE}" has "weight": 0`;
  throw new BadLine(`${what}, so there is nothing to train on; leave the line out`);
}

/**
 * Reads the tools of a line, or of an object in it; `functions` is their former name in OpenAI's files.
 * @param of behind the names in messages, such as ` of "input"`
 * @throws BadLine
 */
export function parseTools({ tools, functions, parallel_tool_calls: parallel }: Fields, of = ''): JsonlTools {
  const given = parseObjects(tools, `"tools"${of}`);
  const former = parseObjects(functions, `"functions"${of}`);
  if (given !== null && former !== null) throw new BadLine(`write "tools" or "functions"${of}, not both`);
  if (parallel !== undefined && parallel !== null && typeof parallel !== 'boolean')
    throw new BadLine(`"parallel_tool_calls"${of} must be true or false`);
  return {
    tools: given ?? former?.map((each) => ({ type: 'function', function: each })) ?? null,
    ...(typeof parallel === 'boolean' && { parallel_tool_calls: parallel }),
  };
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
