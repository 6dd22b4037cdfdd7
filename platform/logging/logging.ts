import { isatty } from 'node:tty';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { LogLevel } from '../config/config.js';
import { lineForPeople } from './log-for-people.js';
import { redactorOf } from './redact.js';

export type { Logger } from 'pino';

/** Fields that never reach a log line, wherever an object that holds them is logged (two levels deep). */
const SECRET_FIELDS = [
  'authorization',
  'cookie',
  'api_key',
  'secret',
  'password',
  'token',
  'secretAccessKey',
  'sessionToken',
  'secret_access_key',
  'session_token',
  'redis_url',
];

const REDACTED_PATHS = [
  ...SECRET_FIELDS,
  ...SECRET_FIELDS.map((field) => `*.${field}`),
  ...SECRET_FIELDS.map((field) => `*.*.${field}`),
];

export interface LoggerOptions {
  level: LogLevel;
  /** Which program writes: `api`, `agent`, `rank`, … */
  name: string;
  /** Where lines go; standard output when absent. */
  destination?: DestinationStream & { isTTY?: boolean };
  /** Where the secrets are that no line may have; by default this process's environment. */
  env?: Readonly<Record<string, string | undefined>>;
}

/**
 * One JSON object per line, times in RFC 3339, level names in words, secrets redacted. A terminal gets the lines as people read
 * them.
 */
export function createLogger({ level, name, destination, env = process.env }: LoggerOptions): Logger {
  const isTerminal = destination ? destination.isTTY === true : isatty(STANDARD_OUTPUT);
  const redact = redactorOf(env);
  const options = {
    name,
    level,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: REDACTED_PATHS, censor: '[redacted]' },
    hooks: { streamWrite: isTerminal ? (line: string) => redact(lineForPeople(line)) : redact },
  };
  return pino(options, destination ?? standardOutput());
}

const STANDARD_OUTPUT = 1;
/** Of lines that nobody takes, so many bytes are kept for when somebody does. */
const MAX_HELD_BYTES = 1024 * 1024;

/** A program goes on where nobody takes its log any more: a terminal that was closed, a disk that is full. */
function standardOutput(): DestinationStream {
  const output = pino.destination({ dest: STANDARD_OUTPUT, sync: true, maxLength: MAX_HELD_BYTES });
  output.on('error', () => undefined);
  return output;
}
