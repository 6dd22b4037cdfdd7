/** JSON with unchanged number literals: JavaScript has one number type, but Python distinguishes 1.0 from 1. */
import { randomUUID } from 'node:crypto';

/** Prefix of a string that represents a number; random, so that no document can contain it. */
const MARK = `number ${randomUUID()} `;
const TEXT_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

/** Number that JavaScript would format differently. */
export class NumberText {
  constructor(private readonly text: string) {}

  toJSON(): string {
    return MARK + this.text;
  }
}

/** Parses like `JSON.parse`, with a `NumberText` for each number whose format would change. */
export function parseExactly(json: string): unknown {
  const marked = json.replace(TEXT_OR_NUMBER, (token) =>
    token.startsWith('"') || String(Number(token)) === token ? token : JSON.stringify(MARK + token),
  );
  return JSON.parse(marked, (_, value) =>
    typeof value === 'string' && value.startsWith(MARK) ? new NumberText(value.slice(MARK.length)) : value,
  );
}

/** Formats with indentation, as Hugging Face programs do. */
export function stringifyExactly(value: unknown): string {
  return JSON.stringify(value, null, 2).replaceAll(new RegExp(`"${MARK}([^"]*)"`, 'g'), '$1');
}
