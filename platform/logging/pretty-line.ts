import { plainText } from '../../contracts/index.js';

/** Fields of pino's lines that are shown elsewhere in the line, or not at all. */
const HIDDEN = new Set(['time', 'level', 'pid', 'hostname', 'name', 'part', 'msg', 'err']);

interface Line {
  time: string;
  level: string;
  name: string;
  part?: string;
  msg?: string;
  err?: { message?: string; stack?: string; code?: unknown };
  [field: string]: unknown;
}

/**
 * Formats a log line for a terminal: time of day, level, program, message, and the other fields. The stack of
 * an error without a code, which is unexpected, follows unless the line is a warning: the program then
 * continues by itself.
 * @param json the line as written by pino
 */
export function prettyLine(json: string): string {
  const line = JSON.parse(json) as Line;
  const { time, level, name, part = name, msg, err } = line;
  const parts = [msg, err?.message === msg ? undefined : err?.message].filter((text) => text !== undefined);
  const fields = Object.entries(line)
    .filter(([field]) => !HIDDEN.has(field))
    .map(([field, value]) => `${field}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const shown = [time.slice(11, 19), level.padEnd(5), `${part}: ${parts.join(': ')}`, ...fields].join('  ');
  // Messages may contain untrusted text, which must not control the terminal.
  const unforeseen = level !== 'warn' && err?.code === undefined;
  const stack = err?.stack && unforeseen ? err.stack.split('\n').slice(1) : [];
  return `${[shown, ...stack].map(plainText).join('\n')}\n`;
}
