/** Origins of the text of a rendered chat. */
import type { JsonlMessage } from '../../contracts/jsonl/fields.js';
import { LEARNED_ROLE } from '../../contracts/jsonl/fields.js';
import type { Value } from '../template/library.js';
import { OriginText } from '../template/origin-text.js';
import { asValue, FieldsValue, fieldsOf, TextValue } from '../template/values.js';

/** Text of the chat that belongs to no message, such as its tools. */
export const DATA = 1;
/** Marks without text: where a loop over messages begins and ends, and where generation tags do. */
export const LOOP_BEGIN = 2;
export const LOOP_END = 3;
export const LEARN_BEGIN = 4;
export const LEARN_END = 5;

/** Parts of a message; `turn` is the point where its iteration of a loop begins. */
const PARTS = ['turn', 'field', 'content', 'reasoning', 'calls'] as const;
const FIRST_MESSAGE = 6;

export type MessagePart = (typeof PARTS)[number];

/** Part of a message that a text comes from. */
export interface Origin {
  /** Index of the message. */
  message: number;
  part: MessagePart;
}

/** Fields of reasoning, each of which some templates read. */
export const REASONING_FIELDS: readonly string[] = ['reasoning_content', 'reasoning', 'thinking'];
/** Reasoning inside of a content. */
const THOUGHT = /(?<=<think>).*?(?=<\/think>)/su;

function numberOf(message: number, part: MessagePart): number {
  return FIRST_MESSAGE + message * PARTS.length + PARTS.indexOf(part);
}

/** Returns the message of an origin; null for another one. */
export function messageOf(origin: number): Origin | null {
  const number = origin - FIRST_MESSAGE;
  if (number < 0) return null;
  const part = PARTS[number % PARTS.length] as MessagePart;
  return { message: Math.floor(number / PARTS.length), part };
}

/** Returns a message as a value of a template. */
export function messageValue(message: JsonlMessage, index: number): Value {
  const origin = (part: MessagePart) => numberOf(index, part);
  const convert = (field: unknown, name: string): Value => {
    if (name === 'content' && typeof field === 'string' && message.role === LEARNED_ROLE)
      return contentValue(field, origin);
    if (name === 'content') return asValue(field, origin('content'));
    if (name === 'tool_calls') return asValue(field, origin('calls'));
    return asValue(field, origin(REASONING_FIELDS.includes(name) ? 'reasoning' : 'field'));
  };
  return new FieldsValue(fieldsOf(message, convert), origin('field'), origin('turn'));
}

function contentValue(content: string, origin: (part: MessagePart) => number): Value {
  const whole = OriginText.of(content, origin('content'));
  const thought = THOUGHT.exec(content);
  if (thought === null) return new TextValue(whole);
  const end = thought.index + thought[0].length;
  const reasoning = OriginText.of(thought[0], origin('reasoning'));
  return new TextValue(OriginText.concat([whole.slice(0, thought.index), reasoning, whole.slice(end)]));
}
