/** How models write calls of tools. A chat template shows it: it renders a known call. */
import type { CallFormat } from '../../contracts/index.js';
import type { JsonlMessage } from '../../contracts/jsonl/fields.js';
import type { JsonlChat } from '../../contracts/jsonl/line.js';

interface ShownCalls {
  format: CallFormat;
  /** Text with special tokens between the prompt and the first call. */
  before: string;
  /** Text with special tokens behind the calls. */
  after: string;
  /**
   * Returns the text with special tokens between the prompt and the arguments of a call; null if a template writes
   * none.
   */
  head: ((name: string) => string) | null;
}

/** The texts of the known call, which no template has. */
const NAME = 'zf_known_name';
const KEY = 'zf_known_key';
const VALUE = 'zf_known_value';
const ANSWER = '\u03a9 zf_known_answer';
const TOOLS = [
  {
    type: 'function',
    function: {
      name: NAME,
      description: 'a',
      parameters: { type: 'object', properties: { [KEY]: { type: 'string' } }, required: [KEY] },
    },
  },
];

/** The form of Hermes and Qwen. Templates that explain it without rendering calls have this mark in the prompt. */
const EXPLAINED: CallFormat = {
  open: '<tool_call>',
  separator: null,
  close: '</tool_call>',
  name: ['name'],
  arguments: ['arguments'],
};

type Render = (chat: JsonlChat, addGenerationPrompt: boolean) => string;

/**
 * Returns how a template writes calls; null if it renders none, or in a form without JSON.
 * @param render throws for chats that the template refuses
 * @param specialTexts matches the special tokens, which have no text in answers
 */
export function shownCalls(render: Render, specialTexts: RegExp | null): ShownCalls | null {
  const answer = (fields: Omit<JsonlMessage, 'role'>) =>
    attempt(() => render(chatOf([{ role: 'assistant', ...fields }]), false));
  const calling = (count: number) =>
    answer({ content: '', tool_calls: Array.from({ length: count }, (_, index) => callOf(index)) });
  const prompt = attempt(() => render(chatOf([]), true)) ?? '';
  const plain = answer({ content: ANSWER });
  const one = calling(1);
  if (plain === null || one === null) return null;
  const visible = (text: string) => (specialTexts ? text.replace(specialTexts, '') : text).trim();
  const begin = beginOfAnswer(plain, one);
  const call = findCall(one, begin);
  if (call === null)
    return prompt.includes(EXPLAINED.open)
      ? {
          format: EXPLAINED,
          before: `${EXPLAINED.open}\n`,
          after: '',
          head: (name) => `${EXPLAINED.open}\n{"name": "${name}", "arguments": `,
        }
      : null;
  const open = visible(one.slice(begin, call.begin));
  const endOfTurn = visible(plain.slice(plain.indexOf(ANSWER) + ANSWER.length));
  const close = withoutEnd(visible(one.slice(call.end)), endOfTurn);
  const beginOfText = one.startsWith(prompt) ? prompt.length : begin;
  const between = betweenCalls(calling(2), call);
  return {
    format: {
      open,
      separator: between === null ? null : separatorOf(visible(between), open, close),
      close,
      name: call.name,
      arguments: call.arguments,
    },
    before: one.slice(beginOfText, call.begin),
    after: one.slice(call.end),
    head: headOf(one, beginOfText, visible),
  };
}

/**
 * Returns the text before the arguments of the known call. Null if the call's name follows, if the arguments are a
 * string, or if a word follows the name in an answer, which has no special tokens.
 */
function headOf(text: string, begin: number, visible: (text: string) => string): ShownCalls['head'] {
  const valueAt = text.lastIndexOf(VALUE);
  const end = text.lastIndexOf('{', valueAt);
  const head = text.slice(begin, end);
  const behindName = visible(head.slice(head.lastIndexOf(NAME) + NAME.length));
  const isApart = !/^[\w-]/.test(behindName) || behindName === idOf(0);
  if (!head.includes(NAME) || !isApart || !isArguments(objectAt(text, end, valueAt)?.value)) return null;
  return (name) => head.replaceAll(NAME, name);
}

function chatOf(answer: readonly JsonlMessage[]): JsonlChat {
  return { messages: [{ role: 'user', content: 'a' }, ...answer], tools: TOOLS };
}

/** Some templates require ids of nine letters and digits. */
function idOf(index: number): string {
  return `zfknown0${index}`;
}

function callOf(index: number): object {
  return { id: idOf(index), type: 'function', function: { name: NAME, arguments: { [KEY]: VALUE } } };
}

function attempt(render: () => string): string | null {
  try {
    return render();
  } catch {
    return null;
  }
}

interface FoundCall {
  begin: number;
  end: number;
  name: string[] | null;
  arguments: string[];
}

/** Returns the last index of the known call from `from` on: prompts have examples. */
function findCall(text: string, from: number): FoundCall | null {
  const valueAt = text.lastIndexOf(VALUE);
  const nameAt = text.lastIndexOf(NAME, valueAt);
  if (nameAt < from) return null;
  let found: FoundCall | null = null;
  // The largest object: a call may be inside of another one.
  for (let begin = text.lastIndexOf('{', nameAt); begin >= from; begin = previous(text, begin)) {
    const object = objectAt(text, begin, valueAt);
    const name = object && pathTo(object.value, (value) => value === NAME);
    const path = object && pathTo(object.value, isArguments);
    if (object && name && path) found = { begin, end: object.end, name, arguments: path };
  }
  if (found !== null) return found;
  const begin = text.indexOf('{', nameAt);
  const object = begin < 0 ? null : objectAt(text, begin, valueAt);
  if (object === null || !isArguments(object.value)) return null;
  return { begin: nameAt, end: object.end, name: null, arguments: [] };
}

function previous(text: string, at: number): number {
  return at === 0 ? -1 : text.lastIndexOf('{', at - 1);
}

/** Returns the JSON object that begins at `begin` and ends behind `inner`. */
function objectAt(text: string, begin: number, inner: number): { value: unknown; end: number } | null {
  for (let end = text.indexOf('}', inner) + 1; end > 0; end = text.indexOf('}', end) + 1) {
    try {
      return { value: JSON.parse(text.slice(begin, end)), end };
    } catch {}
  }
  return null;
}

function isArguments(value: unknown): boolean {
  if (typeof value === 'string') return value.startsWith('{') && value.includes(VALUE);
  return typeof value === 'object' && value !== null && (value as Record<string, unknown>)[KEY] === VALUE;
}

function pathTo(value: unknown, isFound: (value: unknown) => boolean): string[] | null {
  if (isFound(value)) return [];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  for (const [field, inner] of Object.entries(value)) {
    const path = pathTo(inner, isFound);
    if (path !== null) return [field, ...path];
  }
  return null;
}

/** Returns the text between two calls, of which the first is `call`; null if the template renders only one. */
function betweenCalls(two: string | null, call: FoundCall): string | null {
  if (two === null) return null;
  const second = findCall(two, call.end);
  return second === null ? null : two.slice(call.end, second.begin);
}

/** Returns null if each call has its own marks. */
function separatorOf(between: string, open: string, close: string): string | null {
  const hasMarks = between.startsWith(close) && between.slice(close.length).trim() === open;
  return hasMarks && open !== '' ? null : between;
}

function withoutEnd(text: string, end: string): string {
  return end !== '' && text.endsWith(end) ? text.slice(0, -end.length).trim() : text;
}

/** Returns where two texts become different, not inside of a mark such as `<a>`. */
function beginOfAnswer(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  const mark = /[<[][^<>[\]\s]*$/.exec(b.slice(0, length));
  return mark ? mark.index : length;
}
