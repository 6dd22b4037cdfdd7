import { plainText } from '../../contracts/index.js';

/** Of pino's lines what is shown elsewhere in the line, or to nobody. */
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
 * A line of the log as people read it at a terminal: time of day, level, who says so, what, and the other fields. An error that has
 * no code was not foreseen, so its stack follows, unless it is a warning: the program goes on by itself.
 * @param json the line as pino makes it
 */
export function lineForPeople(json: string): string {
  const line = JSON.parse(json) as Line;
  const { time, level, name, part = name, msg, err } = line;
  const what = [msg, err?.message === msg ? undefined : err?.message].filter((text) => text !== undefined);
  const fields = Object.entries(line)
    .filter(([field]) => !HIDDEN.has(field))
    .map(([field, value]) => `${field}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const shown = [time.slice(11, 19), level.padEnd(5), `${part}: ${what.join(': ')}`, ...fields].join('  ');
  // Messages come from anybody: nothing in them is a command to this terminal.
  const unforeseen = level !== 'warn' && err?.code === undefined;
  const stack = err?.stack && unforeseen ? err.stack.split('\n').slice(1) : [];
  return `${[shown, ...stack].map(plainText).join('\n')}\n`;
}
