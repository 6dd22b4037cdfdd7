/** Instructions with answers, and conversations, as public datasets have them: both are chats. */
import {
  BadLine,
  checkLearned,
  isObject,
  type JsonlChat,
  type JsonlMessage,
  LEARNED_ROLE,
  parseMessages,
  parseTools,
} from './fields.js';

type Fields = Readonly<Record<string, unknown>>;

/**
 * Fields of a question and of its answer. The first one names the form; `beside` is a text that the question is about.
 */
interface Form {
  question: string;
  beside: readonly string[];
  answers: readonly string[];
}

const ALPACA: Form = {
  question: 'instruction',
  beside: ['input', 'context'],
  answers: ['output', 'response'],
};
const QUESTION: Form = { question: 'question', beside: ['context'], answers: ['answer', 'response'] };

/** Roles of ShareGPT's turns. */
const ROLES: Readonly<Record<string, string>> = {
  human: 'user',
  user: 'user',
  gpt: LEARNED_ROLE,
  chatgpt: LEARNED_ROLE,
  model: LEARNED_ROLE,
  assistant: LEARNED_ROLE,
  system: 'system',
  tool: 'tool',
  observation: 'tool',
};

/** Reads a line of Alpaca's form: `instruction`, `input` and `output`. @throws BadLine */
export const parseInstruction = (line: Fields): JsonlChat => parseForm(line, ALPACA);

/** Reads a line with `question` and `answer`. @throws BadLine */
export const parseQuestion = (line: Fields): JsonlChat => parseForm(line, QUESTION);

function parseForm(line: Fields, { question, beside, answers }: Form): JsonlChat {
  const given = answers.filter((name) => line[name] !== undefined && line[name] !== null);
  const [answer] = given;
  const wanted = answers.map((name) => `"${name}"`).join(' or ');
  if (answer === undefined || given.length > 1)
    throw new BadLine(`a line with "${question}" must have exactly one of ${wanted}`);
  const asked = [question, ...beside].map((name) => textOf(line, name)).filter((text) => text !== '');
  if (asked.length === 0) throw new BadLine(`"${question}" is empty; leave the line out`);
  const reply = textOf(line, answer);
  if (reply === '') throw new BadLine(`"${answer}" is empty; leave the line out`);
  const messages = [
    ...systemOf(line),
    ...historyOf(line.history),
    { role: 'user', content: asked.join('\n\n') },
    { role: LEARNED_ROLE, content: reply },
  ];
  return { messages, tools: null };
}

function textOf(line: Fields, name: string): string {
  const value = line[name] ?? '';
  if (typeof value !== 'string') throw new BadLine(`"${name}" must be a string`);
  return value;
}

function systemOf(line: Fields): JsonlMessage[] {
  const content = textOf(line, 'system');
  return content === '' ? [] : [{ role: 'system', content }];
}

/** Earlier turns as pairs of a question and its answer. */
function historyOf(history: unknown): JsonlMessage[] {
  if (history === undefined || history === null) return [];
  const isPair = (pair: unknown) =>
    Array.isArray(pair) && pair.length === 2 && pair.every((text) => typeof text === 'string');
  if (!Array.isArray(history) || !history.every(isPair))
    throw new BadLine('"history" must be a list of pairs of strings: a question and its answer');
  return (history as [string, string][]).flatMap(([content, reply]) => [
    { role: 'user', content },
    { role: LEARNED_ROLE, content: reply },
  ]);
}

/** Reads a line of ShareGPT's form: `conversations` with turns of `from` and `value`. @throws BadLine */
export function parseConversations(line: Fields): JsonlChat {
  const { conversations, ...others } = line;
  if (!Array.isArray(conversations)) throw new BadLine('"conversations" must be a list');
  const turns = conversations.map((turn, index) => messageOf(turn, `turn ${index} of "conversations"`));
  const messages = [...systemOf(line), ...parseMessages(turns, '"conversations"')];
  checkLearned(messages);
  return { messages, ...parseTools(others) };
}

/** A turn may be a message already. */
function messageOf(turn: unknown, path: string): unknown {
  if (!isObject(turn) || turn.from === undefined) return turn;
  const { from, value, ...others } = turn;
  const role = typeof from === 'string' && Object.hasOwn(ROLES, from) ? ROLES[from] : undefined;
  if (role === undefined)
    throw new BadLine(`"from" of ${path} must be one of ${Object.keys(ROLES).join(', ')}`);
  if (typeof value !== 'string') throw new BadLine(`"value" of ${path} must be a string`);
  const { weight } = others;
  return { role, content: value, ...(weight !== undefined && { weight }) };
}
