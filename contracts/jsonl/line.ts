/** One line of a dataset of `format=jsonl`, as checked by the API and read by the workers. */

import { ZerofleetError } from '../errors.js';
import { type JsonlContinued, type JsonlLabelled, parseCompleted } from './completions.js';
import { hasUnpairedSurrogate, parseUnambiguously, RepeatedName } from './exact-json.js';
import {
  BadLine,
  checkLearned,
  isObject,
  type JsonlChat,
  type JsonlMessage,
  parseMessages,
  parseTools,
  UNPAIRED_SURROGATE,
} from './fields.js';
import { type JsonlPair, parseOutputs, parsePair } from './preferences.js';

export type { JsonlChat } from './fields.js';

export type JsonlDocument = { text: string } | JsonlContinued | JsonlChat | JsonlPair | JsonlLabelled;

/** Maximum line length in bytes. */
export const MAX_LINE_BYTES = 4 * 1024 * 1024;

/** The error for an invalid line; lines are numbered from 1. */
export function badLine(line: number, what: string): ZerofleetError {
  return badDocument('line', line, what);
}

/** The error for an invalid document, by its number from 1 among the `unit`s of its container. */
export function badDocument(unit: 'line' | 'row' | 'item', number: number, what: string): ZerofleetError {
  return new ZerofleetError('dataset_line_invalid', `${unit} ${number}: ${what}`, {
    details: { [unit]: number },
  });
}

type Fields = Readonly<Record<string, unknown>>;

/** Reader of each kind of document, by the field that only this kind has. */
const READERS: Readonly<Record<string, (line: Fields) => JsonlDocument>> = {
  text: ({ text }) => ({ text: nonEmptyText(text) }),
  messages: (line) => ({ messages: parseChat(line.messages), ...parseTools(line) }),
  chosen: parsePair,
  preferred_output: parseOutputs,
  completion: parseCompleted,
};

/** Parses a non-blank line. Fields that its kind of document does not have are ignored. @throws BadLine */
export function parseLine(line: string): JsonlDocument {
  const value = parseObject(line);
  const [found, ...others] = Object.keys(READERS).filter((name) => value[name] !== undefined);
  const read = found === undefined ? undefined : READERS[found];
  if (read !== undefined && others.length === 0) return read(value);
  const has = found === undefined ? 'none' : [found, ...others].map((name) => `"${name}"`).join(' and ');
  throw new BadLine(
    `an object must have exactly one of "text", "messages", "chosen", "preferred_output" and "completion", this one has ${has}; ` +
      'write {"text": "…"}, {"messages": [{"role": "…", "content": "…"}]}, {"prompt": …, "completion": …} or {"prompt": …, "chosen": …, "rejected": …}',
  );
}

function parseObject(line: string): Fields {
  if (line.startsWith('\uFEFF'))
    throw new BadLine('it begins with a byte order mark; save the file as UTF-8 without one');
  let value: unknown;
  try {
    value = parseUnambiguously(line);
  } catch (error) {
    if (error instanceof RepeatedName) throw new BadLine(error.message);
    throw new BadLine(`it is not JSON (${(error as Error).message}); every line must be one whole object`);
  }
  if (!isObject(value))
    throw new BadLine('it is JSON, but not an object; write {"text": "…"} or {"messages": […]}');
  if (hasUnpairedSurrogate(line, value)) throw new BadLine(UNPAIRED_SURROGATE);
  return value;
}

function nonEmptyText(text: unknown): string {
  if (typeof text !== 'string') throw new BadLine('"text" must be a string');
  if (text === '') throw new BadLine('"text" is empty; leave the line out');
  return text;
}

function parseChat(messages: unknown): JsonlMessage[] {
  const parsed = parseMessages(messages, '"messages"');
  checkLearned(parsed);
  return parsed;
}
