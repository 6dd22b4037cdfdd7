import { isDeepStrictEqual } from 'node:util';
import type { FieldError, FieldErrorCode, Warning } from '../../contracts/index.js';
import { nearestName } from '../../contracts/nearest-name.js';
import { fieldError } from '../common/field-error.js';
import { ignoredField } from '../common/warning.js';

/** What a reader was asked for: the tables of docs/models.md. */
export interface FieldFact {
  /** The names on the way, with dots between them. */
  name: string;
  aliases: readonly string[];
  /** Type and range, for people. */
  type: string;
  /** What is taken when the field is absent; null: nothing, it has to be there. */
  fallback: string | null;
}

/** `fallbackText` says in words what `fallback` was computed from. */
interface Options<T> {
  aliases?: readonly string[];
  fallback?: T;
  fallbackText?: string;
}

export interface Range {
  min?: number;
  max?: number;
  /** Bounds that are not part of the range. */
  above?: number;
  below?: number;
}

type Numeric<T> = Options<T> & Range;

/** Nobody reads more, and to look for what each unknown name may mean takes time. */
const MAX_ERRORS = 100;

/**
 * Reads the fields of one object of a `config.json`. Each call names a field, says what it may be, and answers with its
 * value; a bad value becomes an error, and something harmless stands in for it so that reading goes on. `null` is as if
 * the field were absent, unless the call says otherwise. `finish` refuses what nobody asked for.
 */
export class ConfigReader {
  private readonly known = new Set<string>();

  /**
   * @param at JSON pointer of the object
   * @param errors where bad fields go, in the order in which they were read
   * @param facts where everything goes that was asked for
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

  /** `null` is a value of its own here, and an absent field is `fallback`. */
  integerOrNull(name: string, options: Numeric<number | null>): number | null {
    if (this.given[name] === null) {
      this.learn(name, options, rangeText('integer or null', options));
      return null;
    }
    return this.numeric(name, options, 'integer or null', Number.isInteger);
  }

  /** Undefined when it is absent. */
  optionalNumber(name: string, range: Range): number | undefined {
    if (this.has(name)) return this.number(name, { ...range, fallbackText: 'computed' });
    this.learn(name, { fallbackText: 'computed' }, rangeText('number', range));
    return undefined;
  }

  flag(name: string, fallback: boolean): boolean {
    this.learn(name, { fallback }, 'boolean');
    const value = this.value(name);
    if (value === undefined || typeof value === 'boolean') return value ?? fallback;
    this.fail(name, 'wrong_type', 'must be a boolean');
    return fallback;
  }

  /** @param values what the field may say, with what each means here; `why` says why there are no others */
  choice<T>(
    name: string,
    options: Options<string> & { values: Readonly<Record<string, T>>; why: string },
  ): T {
    const { values, why } = options;
    const names = Object.keys(values);
    this.learn(name, options, names.map((one) => `\`${one}\``).join(', '));
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

  /** A field that may say only what holds here anyway. */
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

  /** Each entry one of `values`; undefined when the list is absent. */
  list(name: string, values: readonly string[], why: string): string[] | undefined {
    this.learn(name, { fallbackText: 'computed' }, `list of ${values.map((one) => `\`${one}\``).join(', ')}`);
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

  /** The id of a token, several or none: kept for the exported model when it is there. */
  tokenId(name: string): number | number[] | null | undefined {
    this.known.add(name);
    const value = this.given[name];
    if (value === undefined || value === null) return value;
    const ids: unknown[] = Array.isArray(value) ? value : [value];
    if (ids.every((id) => Number.isSafeInteger(id))) return value as number | number[];
    this.fail(name, 'wrong_type', 'must be an integer, a list of integers or null');
    return undefined;
  }

  /** The reader of an inner object, or null when it is absent. */
  section(name: string, aliases: readonly string[] = []): ConfigReader | null {
    const value = this.value(name, aliases);
    if (value === undefined) return null;
    const used = [name, ...aliases].find((one) => this.given[one] === value) ?? name;
    if (isObject(value))
      return new ConfigReader(value, `${this.at}/${used}`, this.errors, this.facts, this.warnings);
    this.fail(used, 'wrong_type', 'must be an object');
    return null;
  }

  /** Fields that change nothing here. */
  ignore(names: readonly string[]): void {
    for (const name of names) this.known.add(name);
  }

  /**
   * Those that people could expect something of: a warning says that nothing comes of them.
   *
   * @param holding values that hold here anyway, and need no warning
   */
  ignoreAloud(names: readonly string[], why: string, holding: readonly unknown[] = []): void {
    this.ignore(names);
    for (const name of names)
      if (this.has(name) && !holding.some((one) => isDeepStrictEqual(one, this.given[name])))
        this.warnings.push(ignoredField(`${this.at}/${name}`, name, why));
  }

  has(name: string): boolean {
    return this.given[name] !== undefined && this.given[name] !== null;
  }

  /** Whether nothing is wrong with these fields so far. */
  isSound(...names: string[]): boolean {
    return !this.errors.some(({ pointer }) => names.some((name) => pointer === `${this.at}/${name}`));
  }

  fail(name: string, code: FieldErrorCode, message: string, suggestion?: string): void {
    this.errors.push(fieldError(`${this.at}/${name}`, code, message, suggestion));
  }

  /** Refuses what was not asked for: nobody can say that it changes nothing. */
  finish(): void {
    for (const name of Object.keys(this.given)) {
      // Names with a line before them are transformers' own: how it runs the model, and where it came from.
      if (this.known.has(name) || name.startsWith('_')) continue;
      if (this.errors.length >= MAX_ERRORS) return;
      const message = `${name} is not a known field; a field may change the mathematics, so it is not ignored`;
      const pointer = name.replaceAll('~', '~0').replaceAll('/', '~1');
      this.fail(pointer, 'unknown_field', message, nearestName(name, [...this.known]));
    }
  }

  private numeric(
    name: string,
    options: Numeric<number | null>,
    type: string,
    isOne: (value: unknown) => boolean,
  ): number | null {
    this.learn(name, options, rangeText(type, options));
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

  /** What stands under a name or one of its other spellings; undefined for null. */
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
        `${other} and ${first} are the same field and say different things`,
      );
    return this.given[first];
  }

  private learn(name: string, options: Options<unknown>, type: string): void {
    this.known.add(name);
    const { fallback, fallbackText, aliases = [] } = options;
    const text = fallbackText ?? (fallback === undefined ? null : JSON.stringify(fallback));
    const path = [...this.at.split('/').slice(1), name].join('.');
    this.facts.push({ name: path, aliases, type, fallback: text });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isWithin(value: number, { min, max, above, below }: Range): boolean {
  return (
    value >= (min ?? -Infinity) &&
    value <= (max ?? Infinity) &&
    value > (above ?? -Infinity) &&
    value < (below ?? Infinity)
  );
}

function rangeText(type: string, { min, max, above, below }: Range): string {
  const bounds = [
    min === undefined ? '' : `≥ ${min}`,
    above === undefined ? '' : `> ${above}`,
    max === undefined ? '' : `≤ ${max}`,
    below === undefined ? '' : `< ${below}`,
  ];
  return [type, bounds.filter(Boolean).join(', ')].filter(Boolean).join(' ');
}
