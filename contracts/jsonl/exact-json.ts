/**
 * JSON whose meaning JavaScript's own values change. JavaScript has one number type of 53 bits, where Python
 * distinguishes 1.0 from 1 and has integers of any size. Names such as "2" move to the front of an object. Strings may
 * have surrogates without their other half. This reader also accepts an object that has a name twice, without the first
 * value.
 */
import { randomUUID } from 'node:crypto';

/**
 * Prefixes of a string that represents a number, and of a name that would move; random, so that no document contains
 * them.
 */
const NUMBER = `number ${randomUUID()} `;
const NAME = `name ${randomUUID()} `;

const START = /["\d-]/g;
const NUMBER_TOKEN = /-?\d[\d.eE+-]*/y;
const MOVING_NAME = /^"(?:0|[1-9]\d{0,9})"$/;
const COLON = /\s*:/y;

/** Number that JavaScript would format differently. */
export class NumberText {
  constructor(readonly text: string) {}

  toJSON(): string {
    return NUMBER + this.text;
  }
}

/** Error of an object that has a name twice. */
export class RepeatedName extends Error {
  constructor(name: string) {
    super(`it has ${name} twice in one object, of which JSON keeps only the last; leave one of them out`);
  }
}

/**
 * Parses like `JSON.parse`, with a `NumberText` for each number whose format would change, and with a prefix before
 * each name that would move, which `nameOf` removes.
 */
export function parseExactly(json: string): unknown {
  return readExactly(json).value;
}

/** Parses like `parseExactly`. @throws RepeatedName */
export function parseUnambiguously(json: string): unknown {
  const { value, names } = readExactly(json);
  if (names !== countNames(value)) throw new RepeatedName(repeatedName(json));
  return value;
}

/** Returns the value, and the number of names in the text. */
function readExactly(json: string): { value: unknown; names: number } {
  // Also checks the text: the tokens below are those of valid JSON.
  const plain: unknown = JSON.parse(json);
  const parts: string[] = [];
  let copied = 0;
  let names = 0;
  for (let at = nextToken(json, 0); at < json.length; ) {
    const end = json[at] === '"' ? endOfString(json, at) : endOf(NUMBER_TOKEN, json, at);
    const isName = json[at] === '"' && endOf(COLON, json, end) > end;
    if (isName) names++;
    const exact = exactToken(json.slice(at, end), isName);
    if (exact !== null) {
      parts.push(json.slice(copied, at), exact);
      copied = end;
    }
    at = nextToken(json, end);
  }
  if (copied === 0) return { value: plain, names };
  const value = JSON.parse([...parts, json.slice(copied)].join(''), (_, value) =>
    typeof value === 'string' && value.startsWith(NUMBER)
      ? new NumberText(value.slice(NUMBER.length))
      : value,
  );
  return { value, names };
}

function countNames(value: unknown): number {
  if (typeof value !== 'object' || value === null || value instanceof NumberText) return 0;
  const values: unknown[] = Object.values(value);
  let count = Array.isArray(value) ? 0 : values.length;
  for (const each of values) count += countNames(each);
  return count;
}

/** Returns the first name, as it is written, that an object of the text repeats. */
function repeatedName(json: string): string {
  const open: Set<string>[] = [];
  for (let at = 0; at < json.length; at++) {
    if (json[at] === '{') open.push(new Set());
    else if (json[at] === '}') open.pop();
    else if (json[at] === '"') {
      const end = endOfString(json, at);
      const token = json.slice(at, end);
      const names = open.at(-1);
      at = end - 1;
      if (names === undefined || endOf(COLON, json, end) === end) continue;
      const name: string = JSON.parse(token);
      if (names.has(name)) return token;
      names.add(name);
    }
  }
  return 'a name';
}

/** Returns what replaces a token; null for one that JavaScript keeps. */
function exactToken(token: string, isName: boolean): string | null {
  if (!token.startsWith('"')) return String(Number(token)) === token ? null : JSON.stringify(NUMBER + token);
  return isName && MOVING_NAME.test(token) ? `"${NAME}${token.slice(1)}` : null;
}

function nextToken(json: string, from: number): number {
  START.lastIndex = from;
  return START.exec(json)?.index ?? json.length;
}

/** Returns the end of a sticky pattern's match at `begin`, or `begin`. */
function endOf(pattern: RegExp, json: string, begin: number): number {
  pattern.lastIndex = begin;
  return begin + (pattern.exec(json)?.[0].length ?? 0);
}

function endOfString(json: string, begin: number): number {
  for (let at = json.indexOf('"', begin + 1); ; at = json.indexOf('"', at + 1)) {
    let slashes = 0;
    while (json[at - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return at + 1;
  }
}

/** Returns the name of a field of `parseExactly`. */
export function nameOf(field: string): string {
  return field.startsWith(NAME) ? field.slice(NAME.length) : field;
}

/** Formats what `parseExactly` returned, with indentation, as Hugging Face programs do. */
export function stringifyExactly(value: unknown): string {
  return JSON.stringify(value, null, 2)
    .replaceAll(new RegExp(`"${NUMBER}([^"]*)"`, 'g'), '$1')
    .replaceAll(`"${NAME}`, '"');
}

/**
 * An unpaired surrogate as `JSON.stringify` writes it. An even number of preceding backslashes are escaped backslashes.
 */
const UNPAIRED_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;
const MAYBE_UNPAIRED_SURROGATE = /\\u[dD][89a-fA-F]/;

/**
 * Returns whether JSON has a surrogate without its other half, which UTF-8 cannot represent.
 * @param value the parsed `json`, also of `parseExactly`
 */
export function hasUnpairedSurrogate(json: string, value: unknown): boolean {
  return MAYBE_UNPAIRED_SURROGATE.test(json) && UNPAIRED_SURROGATE.test(JSON.stringify(value));
}
