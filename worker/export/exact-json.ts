/** JSON whose numbers stay as they were written: JavaScript has one kind of them, and a reader in Python tells 1.0 from 1. */
import { randomUUID } from 'node:crypto';

/** Begins a text that stands for a number; nobody can know it before. */
const MARK = `number ${randomUUID()} `;
const TEXT_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

/** A number that JavaScript would write in another way. */
export class NumberText {
  constructor(private readonly text: string) {}

  toJSON(): string {
    return MARK + this.text;
  }
}

/** As `JSON.parse`, with a `NumberText` for each number that would change. */
export function parseExactly(json: string): unknown {
  const marked = json.replace(TEXT_OR_NUMBER, (token) =>
    token.startsWith('"') || String(Number(token)) === token ? token : JSON.stringify(MARK + token),
  );
  return JSON.parse(marked, (_, value) =>
    typeof value === 'string' && value.startsWith(MARK) ? new NumberText(value.slice(MARK.length)) : value,
  );
}

/** Indented, as programs of Hugging Face write it. */
export function stringifyExactly(value: unknown): string {
  return JSON.stringify(value, null, 2).replaceAll(new RegExp(`"${MARK}([^"]*)"`, 'g'), '$1');
}
