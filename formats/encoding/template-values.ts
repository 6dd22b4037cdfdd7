/**
 * Values of a template as the library's own, which keep what JavaScript's lose: the text of numbers, and the order of
 * names such as "2". The library does not export their classes.
 */
import { Environment } from '@huggingface/jinja';
import { NumberText, nameOf } from '../../contracts/jsonl/exact-json.js';

/** Mark around a number in a text that `tojson` writes. */
export const NUMBER_MARK = '\ufdd4';
const WRITTEN_NUMBER = new RegExp(`"${NUMBER_MARK}([^"]*)${NUMBER_MARK}"`, 'g');

type Value = object;

function classOf(value: unknown): new (value: unknown) => Value {
  return new Environment().set('value', value).constructor as new (
    value: unknown,
  ) => Value;
}

const [IntegerValue, FloatValue, StringValue] = [classOf(1), classOf(0.5), classOf('')];
const [BooleanValue, NullValue] = [classOf(true), classOf(null)];
const [ArrayValue, ObjectValue] = [classOf([]), classOf({})];

class KeptNumber extends Number {
  constructor(private readonly text: string) {
    super(text);
  }

  override toString(): string {
    return this.text;
  }

  toJSON(): string {
    return NUMBER_MARK + this.text + NUMBER_MARK;
  }
}

/**
 * Returns a list that the library takes as one of these values.
 * @param values as of `parseExactly`
 * @param textOf applied to all texts and names in them
 */
export function templateList(values: readonly unknown[], textOf: (text: string) => string): unknown[] {
  const converted = values.map((value) => asValue(value, textOf));
  // The library converts a list with its method `map`.
  return Object.assign([], { map: () => converted });
}

/** Returns a rendered text with the numbers of `templateList` as they are written. */
export function withNumbers(rendered: string): string {
  return rendered.replace(WRITTEN_NUMBER, '$1');
}

function asValue(value: unknown, textOf: (text: string) => string): Value {
  if (value === null) return new NullValue(null);
  if (typeof value === 'string') return new StringValue(textOf(value));
  if (typeof value === 'boolean') return new BooleanValue(value);
  if (typeof value === 'number')
    return Number.isInteger(value) ? new IntegerValue(value) : new FloatValue(value);
  if (value instanceof NumberText) return numberOf(value);
  if (Array.isArray(value)) return new ArrayValue(value.map((item) => asValue(item, textOf)));
  const fields = Object.entries(value as object).filter(([, field]) => field !== undefined);
  return new ObjectValue(
    new Map(fields.map(([name, field]) => [textOf(nameOf(name)), asValue(field, textOf)])),
  );
}

function numberOf({ text }: NumberText): Value {
  const made = /[.eE]/.test(text)
    ? new FloatValue(new KeptNumber(text))
    : new IntegerValue(new KeptNumber(text));
  return Object.assign(made, { toString: () => text });
}
