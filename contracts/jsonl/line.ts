/** One line of a dataset of `format=jsonl`, as checked by the API and read by the workers. */

import { ZerofleetError } from '../errors.js';
import {
  checkPrompt,
  type JsonlContinued,
  type JsonlLabelled,
  type JsonlPrompt,
  parseCompleted,
  parsePrompt,
} from './completions.js';
import { hasUnpairedSurrogate, nameOf, parseUnambiguously, RepeatedName } from './exact-json.js';
import {
  BadLine,
  checkLearned,
  isObject,
  type JsonlChat,
  LEARNED_ROLE,
  parseMessages,
  parseTools,
  UNPAIRED_SURROGATE,
} from './fields.js';
import { parseConversations, parseInstruction, parseQuestion } from './instructions.js';
import { type JsonlPair, parseOutputs, parsePair } from './preferences.js';

export type { JsonlChat } from './fields.js';

export type JsonlDocument =
  | { text: string }
  | JsonlContinued
  | JsonlChat
  | JsonlPair
  | JsonlLabelled
  | JsonlPrompt;

/** Returns whether a document is a prompt alone, of which nothing can be learned without a reward. */
export function isPrompt(document: JsonlDocument): boolean {
  return 'prompt' in document && !('completion' in document || 'chosen' in document);
}

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

/** Fields of a line that an error names. */
const MAX_NAMES = 8;

type Fields = Readonly<Record<string, unknown>>;

/** Reader of each kind of document, by the field that only this kind has. */
const READERS: Readonly<Record<string, (line: Fields) => JsonlDocument>> = {
  text: ({ text }) => ({ text: nonEmptyText(text) }),
  messages: parseChat,
  chosen: parsePair,
  preferred_output: parseOutputs,
  completion: parseCompleted,
};

/** Readers of forms of public datasets, for lines that have no field of READERS. */
const PUBLIC_READERS: typeof READERS = {
  instruction: parseInstruction,
  question: parseQuestion,
  conversations: parseConversations,
};

/** Whether a line judges a completion, so that its prompt is not alone. A label of text is a field for graders. */
const isJudgement = ({ rejected, label }: Fields) => rejected !== undefined || typeof label === 'boolean';

/** Reader of a line that has no field of the others: a prompt whose completions are sampled. */
const PROMPT_READERS: typeof READERS = {
  prompt: (line) => ({ prompt: parsePrompt(line.prompt), ...parseTools(line) }),
};

/** A line is read by the first of these that has one of its fields. */
const READERS_IN_ORDER = [READERS, PUBLIC_READERS, PROMPT_READERS];
const ALL_READERS = { ...READERS, ...PUBLIC_READERS, ...PROMPT_READERS };
const KINDS = Object.keys(ALL_READERS);

/** The names in words: `"a", "b" and "c"`. */
const listed = (names: readonly string[]) =>
  names
    .map((name) => `"${name}"`)
    .join(', ')
    .replace(/, ([^,]*)$/, ' and $1');

/** Parses a non-blank line. Fields that its kind of document does not have are ignored. @throws BadLine */
export function parseLine(line: string): JsonlDocument {
  const value = parseObject(line);
  const isJudged = isJudgement(value);
  const isGiven = (name: string) => value[name] !== undefined && !(name === 'prompt' && isJudged);
  const found =
    READERS_IN_ORDER.map((readers) => Object.keys(readers).filter(isGiven)).find(
      ({ length }) => length > 0,
    ) ?? [];
  const [only = '', ...others] = found;
  const read = ALL_READERS[only];
  if (read !== undefined && others.length === 0) return read(value);
  throw new BadLine(
    `an object must have exactly one of ${listed(KINDS)}, this one has ${hasOf(value, found)}; ` +
      'write {"text": "…"}, {"messages": [{"role": "…", "content": "…"}]}, {"prompt": …, "completion": …} or {"prompt": …, "chosen": …, "rejected": …}',
  );
}

function hasOf(value: Fields, found: readonly string[]): string {
  if (found.length > 0) return listed(found);
  const names = Object.keys(value).map(nameOf);
  if (names.length === 0) return 'no field';
  if (names.length <= MAX_NAMES) return `only ${listed(names)}`;
  return `only others, such as ${listed(names.slice(0, MAX_NAMES))}`;
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

/** A chat without a turn of the assistant is a prompt. */
function parseChat({ messages: given, ...line }: Fields): JsonlChat | JsonlPrompt {
  const messages = parseMessages(given, '"messages"');
  const tools = parseTools(line);
  if (messages.length > 0 && messages.every(({ role }) => role !== LEARNED_ROLE))
    return { prompt: checkPrompt(messages), ...tools };
  checkLearned(messages);
  return { messages, ...tools };
}
