/**
 * Values of a template in the library's own types. They keep what values of JavaScript lose: the origin of texts, the
 * digits of numbers, and the order of names such as "2". Texts have the methods of Python's `str`.
 */
import { NumberText, nameOf } from '../../contracts/jsonl/exact-json.js';
import {
  ArrayValue,
  BooleanValue,
  FloatValue,
  FunctionValue,
  IntegerValue,
  type LazyValue,
  type NativeFunction,
  NullValue,
  ObjectValue,
  type Scope,
  StringValue,
  UNDEFINED,
  type Value,
} from './library.js';
import { OriginText, TEMPLATE } from './origin-text.js';

type Method = (text: OriginText, args: readonly Value[]) => Value;

/** Text of a template with its origins. */
export class TextValue extends StringValue {
  constructor(readonly origins: OriginText) {
    super(origins.text);
  }

  override get builtins(): ReadonlyMap<string, Value> {
    const get = (name: string) => {
      const method = METHODS[name];
      if (method === undefined) return super.builtins.get(name);
      return new FunctionValue((args: readonly Value[]) => method(this.origins, args));
    };
    // The library looks up one name at a time.
    return { get } as ReadonlyMap<string, Value>;
  }
}

/** Returns a text's origins; a text of the library comes from the template. */
export function originsOf(value: Value): OriginText {
  return value instanceof TextValue ? value.origins : OriginText.of(String(value.value), TEMPLATE);
}

const BOTH = { begin: true, end: true };
/** Methods of texts, some of which are filters as well. */
export const METHODS: Readonly<Record<string, Method>> = {
  strip: (text, args) => new TextValue(text.strip(charactersOf(args), BOTH)),
  trim: (text, args) => new TextValue(text.strip(charactersOf(args), BOTH)),
  lstrip: (text, args) => new TextValue(text.strip(charactersOf(args), { ...BOTH, end: false })),
  rstrip: (text, args) => new TextValue(text.strip(charactersOf(args), { ...BOTH, begin: false })),
  upper: (text) => new TextValue(text.mapped((text) => text.toUpperCase())),
  lower: (text) => new TextValue(text.mapped((text) => text.toLowerCase())),
  title: (text) => new TextValue(text.mapped(titled)),
  capitalize: (text) => new TextValue(text.mapped(capitalized)),
  split: (text, [separator, limit]) =>
    new ArrayValue(
      text
        .split(isText(separator) ? separator.value : null, numberOf(limit, -1))
        .map((part) => new TextValue(part)),
    ),
  replace: (text, [old, replacement, limit]) => {
    if (!isText(old) || !isText(replacement)) throw new Error('replace() needs two texts');
    return new TextValue(text.replace(old.value, originsOf(replacement), numberOf(limit, -1)));
  },
};

const titled = (text: string) => text.toLowerCase().replace(/\p{L}+/gu, (word) => capitalized(word));
const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1).toLowerCase();

export function isText(value: Value | undefined): value is Value & { value: string } {
  return value instanceof StringValue;
}

function charactersOf([chars]: readonly Value[]): string | null {
  return isText(chars) ? chars.value : null;
}

/** Reads an argument that may be named, such as `count`. */
function numberOf(value: Value | undefined, otherwise: number): number {
  const given: unknown = value?.value instanceof Map ? [...value.value.values()][0]?.value : value?.value;
  return typeof given === 'number' ? given : otherwise;
}

/** Object whose names have an origin. */
export class FieldsValue extends ObjectValue {
  constructor(
    fields: ReadonlyMap<string, Value>,
    /** Origin of the names. */
    readonly origin: number,
    /** Origin that marks the beginning of this message; null for other objects. */
    readonly turn: number | null = null,
  ) {
    super(fields);
  }

  items() {
    return new ArrayValue([...this.value].map(([name, value]) => this.pair(name, value)));
  }

  override keys() {
    return new ArrayValue([...this.value.keys()].map((name) => textOf(name, this.origin)));
  }

  override get builtins(): ReadonlyMap<string, Value> {
    const get = (name: string) => {
      if (name === 'dictsort') return new FunctionValue(sorted);
      return OBJECT_METHODS.has(name) ? super.builtins.get(name) : undefined;
    };
    const sorted = (args: Value[], scope: Scope) => {
      const sort = super.builtins.get('dictsort')?.value as NativeFunction;
      const pairs = sort(args, scope).value as { value: [Value, Value] }[];
      return new ArrayValue(pairs.map(({ value: [name, value] }) => this.pair(String(name.value), value)));
    };
    return { get } as ReadonlyMap<string, Value>;
  }

  private pair(name: string, value: Value): Value {
    return new ArrayValue([textOf(name, this.origin), value]);
  }
}

/** Names of the library's methods of objects, which it creates for each object at once. */
const OBJECT_METHODS: ReadonlySet<string> = new Set(new ObjectValue(new Map()).builtins.keys());

/** Variable `loop` of an iteration. */
export class LoopState implements LazyValue {
  private made: Value | null = null;

  constructor(
    private readonly items: readonly Value[],
    private readonly index: number,
  ) {}

  read(): Value {
    const { items, index } = this;
    const { length } = items;
    const integer = (value: number) => new IntegerValue(value);
    this.made ??= new ObjectValue(
      new Map([
        ['index', integer(index + 1)],
        ['index0', integer(index)],
        ['revindex', integer(length - index)],
        ['revindex0', integer(length - index - 1)],
        ['first', new BooleanValue(index === 0)],
        ['last', new BooleanValue(index === length - 1)],
        ['length', integer(length)],
        ['previtem', items[index - 1] ?? UNDEFINED],
        ['nextitem', items[index + 1] ?? UNDEFINED],
      ]),
    );
    return this.made;
  }
}

class KeptNumber extends Number {
  constructor(private readonly text: string) {
    super(text);
  }

  override toString(): string {
    return this.text;
  }
}

/** @param text creates a text of the value */
export function asValue(value: unknown, origin: number, text = textOf): Value {
  if (value === null) return new NullValue(null);
  if (typeof value === 'string') return text(value, origin);
  if (typeof value === 'boolean') return new BooleanValue(value);
  if (typeof value === 'number')
    return Number.isInteger(value) ? new IntegerValue(value) : new FloatValue(value);
  if (value instanceof NumberText) return keptNumber(value);
  if (Array.isArray(value)) return new ArrayValue(value.map((item) => asValue(item, origin, text)));
  return new FieldsValue(
    fieldsOf(value as object, (field) => asValue(field, origin, text)),
    origin,
  );
}

/** Returns the fields of an object, without undefined ones, with their values converted. */
export function fieldsOf(
  value: object,
  convert: (field: unknown, name: string) => Value,
): Map<string, Value> {
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return new Map(fields.map(([name, field]) => [nameOf(name), convert(field, nameOf(name))]));
}

export function textOf(text: string, origin: number): Value {
  return new TextValue(OriginText.of(text, origin));
}

function keptNumber({ text }: NumberText): Value {
  const made = /[.eE]/.test(text)
    ? new FloatValue(new KeptNumber(text))
    : new IntegerValue(new KeptNumber(text));
  return Object.assign(made, { toString: () => text });
}
