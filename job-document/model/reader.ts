import { isDeepStrictEqual } from 'node:util';
import type { FieldError, FieldErrorCode, Warning } from '../../contracts/index.js';
import { nearestName } from '../../contracts/nearest-name.js';
import { fieldError } from '../common/field-error.js';
import { ignoredField } from '../common/warning.js';
import type { FieldFact, FieldSchema } from './field-facts.js';
import { isWithin, type Range, rangeText } from './range.js';

/** `fallbackText` describes how `fallback` was computed. */
interface Options<T> {
  aliases?: readonly string[];
  fallback?: T;
  fallbackText?: string;
}

type Numeric<T> = Options<T> & Range;

/** More errors help no client, and the search for similar names of unknown fields takes time. */
const MAX_ERRORS = 100;

/**
 * Reads the fields of one object of a `config.json`. Each call names a field and its constraints, and returns
 * its value; a bad value becomes an error, and a harmless value is returned so that reading continues. `null`
 * equals an absent field, unless a call states otherwise. `finish` refuses fields that were not read.
 */
export class ConfigReader {
  private readonly known = new Set<string>();

  /**
   * @param at JSON pointer of the object
   * @param errors receives bad fields in the order of reading
   * @param facts receives the documentation of all fields read
   */
  constructor(
    private readonly given: Readonly<Record<string, unknown>>,
    private readonly at = '',
    readonly errors: FieldError[] = [],
    readonly facts: FieldFact[] = [],
    readonly warnings: Warning[] = [],
  ) {}

  integer(name: string, options: Numeric<number>): number {
    return this.numeric(name, options, 'integer', Number.isInteger) as number;
  }

  number(name: string, options: Numeric<number>): number {
    return this.numeric(name, options, 'number', Number.isFinite) as number;
  }

  /**
   * Reads an integer or `null`, which is a value of its own here; an absent field is `fallback`.
   * @param none another spelling of null
   */
  integerOrNull(name: string, options: Numeric<number | null>, none: number | null = null): number | null {
    return this.numericOrNull(name, options, 'integer or null', Number.isInteger, none);
  }

  numberOrNull(name: string, options: Numeric<number | null>): number | null {
    return this.numericOrNull(name, options, 'number or null', Number.isFinite);
  }

  /** Returns undefined for an absent field. */
  optionalNumber(name: string, range: Range): number | undefined {
    if (this.has(name)) return this.number(name, { ...range, fallbackText: 'computed' });
    this.learn(name, { fallbackText: 'computed' }, rangeText('number', range), { type: 'number' });
    return undefined;
  }

  flag(name: string, fallback: boolean): boolean {
    this.learn(name, { fallback }, 'boolean', { type: 'boolean' });
    const value = this.value(name);
    if (value === undefined || typeof value === 'boolean') return value ?? fallback;
    this.fail(name, 'wrong_type', 'must be a boolean');
    return fallback;
  }

  /** @param values accepted texts with their meanings; `why` has the reason for the restriction */
  choice<T>(
    name: string,
    options: Options<string> & { values: Readonly<Record<string, T>>; why: string },
  ): T {
    const { values, why } = options;
    const names = Object.keys(values);
    const meanings = [...new Set(Object.values(values))].sort();
    const text = names.map((one) => `\`${one}\``).join(', ');
    this.learn(name, options, text, { type: 'string', enum: meanings });
    const value = this.value(name, options.aliases) ?? options.fallback;
    const standIn = Object.values(values)[0] as T;
    if (value === undefined) this.fail(name, 'missing_field', `${name} is required`);
    else if (typeof value !== 'string') this.fail(name, 'wrong_type', 'must be a string');
    else if (Object.hasOwn(values, value)) return values[value] as T;
    else
      this.fail(
        name,
        'model_field_unsupported',
        `${name} is ${JSON.stringify(value)}; it may be ${names.join(', ')}. ${why}`,
        names.length === 1 ? names[0] : nearestName(value, names),
      );
    return standIn;
  }

  /** Returns the value of a field if it is a string. */
  text(name: string): string | undefined {
    const value = this.value(name);
    return typeof value === 'string' ? value : undefined;
  }

  /** Checks a field that may only have values that always hold here. */
  only(name: string, values: readonly unknown[], why: string): void {
    this.known.add(name);
    const value = this.value(name);
    if (value === undefined || values.some((one) => isDeepStrictEqual(one, value))) return;
    const [first] = values;
    this.fail(
      name,
      'model_field_unsupported',
      `${name}: ${why}`,
      first === undefined ? undefined : JSON.stringify(first),
    );
  }

  /** Reads a list with entries out of `values`; undefined when it is absent. */
  list<T extends string | number>(name: string, values: readonly T[], why: string): T[] | undefined {
    const text = `list of ${values.map((one) => `\`${one}\``).join(', ')}`;
    const items = { type: typeof values[0] === 'number' ? 'integer' : 'string', enum: values };
    this.learn(name, { fallbackText: 'computed' }, text, { type: 'array', items });
    const value = this.value(name);
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) {
      this.fail(name, 'wrong_type', 'must be a list');
      return undefined;
    }
    const bad = value.findIndex((entry) => !values.includes(entry));
    if (bad >= 0) {
      const message = `${JSON.stringify(value[bad])}; it may be ${values.join(', ')}. ${why}`;
      this.fail(`${name}/${bad}`, 'model_field_unsupported', message);
      return undefined;
    }
    return value;
  }

  /** Reads a required list of numbers. */
  numbers(name: string, length: number, range: Range): number[] {
    const schema = { type: 'array', items: { type: 'number' } };
    this.learn(name, {}, rangeText(`list of ${length} numbers`, range), schema);
    const value = this.value(name);
    if (value === undefined) this.fail(name, 'missing_field', `${name} is required`);
    else if (!Array.isArray(value)) this.fail(name, 'wrong_type', 'must be a list of numbers');
    else if (value.length !== length)
      this.fail(name, 'wrong_length', `has ${value.length} entries; it must have ${length}`);
    else {
      const bad = value.findIndex((entry) => !Number.isFinite(entry) || !isWithin(entry, range));
      if (bad < 0) return value;
      this.fail(`${name}/${bad}`, 'out_of_range', `must be a ${rangeText('number', range)}`);
    }
    return [];
  }

  /** Reads token ids: one, several or none. They are kept for the exported model. */
  tokenId(name: string): number | number[] | null | undefined {
    this.known.add(name);
    const value = this.given[name];
    if (value === undefined || value === null) return value;
    const ids: unknown[] = Array.isArray(value) ? value : [value];
    if (ids.every((id) => Number.isSafeInteger(id))) return value as number | number[];
    this.fail(name, 'wrong_type', 'must be an integer, a list of integers or null');
    return undefined;
  }

  /** Returns the reader of an inner object, or null when it is absent. */
  section(name: string, aliases: readonly string[] = []): ConfigReader | null {
    const value = this.value(name, aliases);
    if (value === undefined) return null;
    const used = [name, ...aliases].find((one) => this.given[one] === value) ?? name;
    if (isObject(value))
      return new ConfigReader(value, `${this.at}/${used}`, this.errors, this.facts, this.warnings);
    this.fail(used, 'wrong_type', 'must be an object');
    return null;
  }

  /** Accepts fields without effect. */
  ignore(names: readonly string[]): void {
    for (const name of names) this.known.add(name);
  }

  /**
   * Accepts fields that users could expect an effect of, with a warning.
   *
   * @param holding values that always hold here, and need no warning
   */
  ignoreWithWarning(names: readonly string[], why: string, holding: readonly unknown[] = []): void {
    this.ignore(names);
    for (const name of names)
      if (this.has(name) && !holding.some((one) => isDeepStrictEqual(one, this.given[name])))
        this.warnings.push(ignoredField(`${this.at}/${name}`, name, why));
  }

  has(name: string): boolean {
    return this.given[name] !== undefined && this.given[name] !== null;
  }

  /** Returns whether these fields have no errors so far. */
  isSound(...names: string[]): boolean {
    return !this.errors.some(({ pointer }) => names.some((name) => pointer === `${this.at}/${name}`));
  }

  fail(name: string, code: FieldErrorCode, message: string, suggestion?: string): void {
    this.errors.push(fieldError(`${this.at}/${name}`, code, message, suggestion));
  }

  /** Refuses fields that were not read, because they might change the mathematics. */
  finish(): void {
    for (const name of Object.keys(this.given)) {
      // Names with a leading underscore are private to transformers: execution and origin of the model.
      if (this.known.has(name) || name.startsWith('_')) continue;
      if (this.errors.length >= MAX_ERRORS) return;
      const message = `${name} is not a known field; a field may change the mathematics, so it is not ignored`;
      const pointer = name.replaceAll('~', '~0').replaceAll('/', '~1');
      this.fail(pointer, 'unknown_field', message, nearestName(name, [...this.known]));
    }
  }

  private numericOrNull(
    name: string,
    options: Numeric<number | null>,
    type: string,
    isOne: (value: unknown) => boolean,
    none: number | null = null,
  ): number | null {
    const value = this.given[name];
    if (value !== null && value !== none) return this.numeric(name, options, type, isOne);
    this.learnNumber(name, options, type);
    return null;
  }

  private numeric(
    name: string,
    options: Numeric<number | null>,
    type: string,
    isOne: (value: unknown) => boolean,
  ): number | null {
    this.learnNumber(name, options, type);
    const value = this.value(name, options.aliases);
    const standIn = options.fallback ?? options.min ?? 1;
    if (value === undefined) {
      if (options.fallback !== undefined) return options.fallback;
      this.fail(name, 'missing_field', `${name} is required`);
    } else if (!isOne(value)) {
      this.fail(name, 'wrong_type', `must be ${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`);
    } else if (!isWithin(value as number, options)) {
      this.fail(name, 'out_of_range', `must be ${rangeText('', options).trim()}`);
    } else {
      return value as number;
    }
    return standIn;
  }

  /** Returns the value of a name or its aliases; undefined for null. */
  private value(name: string, aliases: readonly string[] = []): unknown {
    const names = [name, ...aliases];
    this.ignore(names);
    const [first, ...others] = names.filter((one) => this.has(one));
    if (first === undefined) return undefined;
    const other = others.find((one) => !isDeepStrictEqual(this.given[one], this.given[first]));
    if (other !== undefined)
      this.fail(
        other,
        'model_field_conflict',
        `${other} and ${first} are the same field and have different values`,
      );
    return this.given[first];
  }

  /** @param type `integer` or `number`, then perhaps `or null` */
  private learnNumber(name: string, options: Numeric<number | null>, type: string): void {
    const types = type.split(' or ');
    this.learn(name, options, rangeText(type, options), { type: types.length === 1 ? type : types });
  }

  private learn(name: string, options: Options<unknown>, type: string, schema: FieldSchema): void {
    this.known.add(name);
    const { fallback, fallbackText, aliases = [] } = options;
    const text = fallbackText ?? (fallback === undefined ? null : JSON.stringify(fallback));
    const path = [...this.at.split('/').slice(1), name].join('.');
    this.facts.push({ name: path, aliases, type, fallback: text, schema });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
