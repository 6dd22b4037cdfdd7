import { isatty } from 'node:tty';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { LogLevel } from '../config/config.js';
import { prettyLine } from './pretty-line.js';
import { redactorOf } from './redact.js';

export type { Logger } from 'pino';

/** Fields that are redacted in any logged object (two levels deep). */
const SECRET_FIELDS = [
  'authorization',
  'x-api-key',
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

const REDACTED_PATHS = ['', '*', '*.*'].flatMap((parent) =>
  SECRET_FIELDS.map((field) => `${parent}["${field}"]`),
);

interface LoggerOptions {
  level: LogLevel;
  /** Program that writes: `api`, `agent`, `rank`, … */
  name: string;
  /** Destination of lines; standard output by default. */
  destination?: DestinationStream & { isTTY?: boolean };
  /** Environment whose secrets are redacted; by default this process's environment. */
  env?: Readonly<Record<string, string | undefined>>;
}

/**
 * Creates a logger: one JSON object per line, times in RFC 3339, level names in words, secrets redacted. A
 * terminal gets readable lines.
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
    hooks: { streamWrite: isTerminal ? (line: string) => redact(prettyLine(line)) : redact },
  };
  return pino(options, destination ?? standardOutput());
}

const STANDARD_OUTPUT = 1;
/** Bytes kept while the output accepts none. */
const MAX_HELD_BYTES = 1024 * 1024;

/** Returns standard output as a destination that survives its failure: a closed terminal, a full disk. */
function standardOutput(): DestinationStream {
  const output = pino.destination({ dest: STANDARD_OUTPUT, sync: true, maxLength: MAX_HELD_BYTES });
  output.on('error', () => undefined);
  return output;
}
