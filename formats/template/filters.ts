/** Filters of texts with origins, and those whose result is such a text. */
import { type JsonStyle, toJson } from './json.js';
import type { Value } from './library.js';
import { OriginText, TEMPLATE } from './origin-text.js';
import { FieldsValue, isText, METHODS, originsOf, TextValue } from './values.js';

/** @throws Error for a value that Python would not concatenate with a text */
export function asText(value: Value): OriginText {
  if (isText(value)) return originsOf(value);
  const { value: content } = value;
  if (content instanceof Map || Array.isArray(content) || typeof content === 'function')
    throw new Error('it adds a value that is no text to a text; the filter tojson makes a text of a value');
  return OriginText.of(value.toString(), TEMPLATE);
}

type Filter = (operand: Value, args: readonly Value[], options: ReadonlyMap<string, Value>) => Value;

export const TEXT_FILTERS: ReadonlyMap<string, Filter> = new Map([
  ...['trim', 'upper', 'lower', 'title', 'capitalize', 'replace'].map((name): [string, Filter] => [
    name,
    (operand, args) => METHODS[name]?.(originsOf(operand), args) ?? operand,
  ]),
  ['tojson', tojson],
  ['indent', indented],
  ['join', (operand, args) => joined(originsOf(operand).characters(), args)],
]);
export const VALUE_FILTERS: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ['tojson', tojson],
  [
    'items',
    (operand) => {
      if (operand instanceof FieldsValue) return operand.items();
      throw new Error('the filter items needs an object');
    },
  ],
  [
    'join',
    (operand, args, options) => {
      if (!Array.isArray(operand.value)) throw new Error('the filter join needs a list');
      const separator = options.get('d');
      return joined(operand.value.map(asText), separator ? [separator] : args);
    },
  ],
]);

function tojson(operand: Value, _: readonly Value[], options: ReadonlyMap<string, Value>): Value {
  return new TextValue(toJson(operand, styleOf(options)));
}

function indented(operand: Value, args: readonly Value[], options: ReadonlyMap<string, Value>): Value {
  const option = (index: number, name: string) => (args[index] ?? options.get(name))?.value;
  const [first, blank] = [option(1, 'first') === true, option(2, 'blank') === true];
  const margin = OriginText.of(' '.repeat(Number(option(0, 'width') ?? 4)), TEMPLATE);
  const lines = originsOf(operand)
    .split('\n')
    .map((line, index) =>
      (index === 0 && !first) || (line.text === '' && !blank) ? line : OriginText.concat([margin, line]),
    );
  return new TextValue(OriginText.join(lines, OriginText.of('\n', TEMPLATE)));
}

function joined(parts: readonly OriginText[], [separator]: readonly Value[]): Value {
  return new TextValue(
    OriginText.join(parts, separator ? originsOf(separator) : OriginText.of('', TEMPLATE)),
  );
}

function styleOf(options: ReadonlyMap<string, Value>): JsonStyle {
  const value = (name: string): unknown => options.get(name)?.value;
  const [indent, separators] = [value('indent'), value('separators')];
  return {
    indent: typeof indent === 'number' ? indent : null,
    ensure_ascii: value('ensure_ascii') === true,
    sort_keys: value('sort_keys') === true,
    separators: Array.isArray(separators)
      ? (separators.map(({ value }: { value: string }) => value) as [string, string])
      : null,
  };
}
