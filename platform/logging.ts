import { type DestinationStream, type Logger, pino } from 'pino';
import type { LogLevel } from './config.js';
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
  destination?: DestinationStream;
  /** Where the secrets are that no line may have; by default this process's environment. */
  env?: Readonly<Record<string, string | undefined>>;
}

/** One JSON object per line, times in RFC 3339, level names in words, secrets redacted. */
export function createLogger({ level, name, destination, env = process.env }: LoggerOptions): Logger {
  const options = {
    name,
    level,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: REDACTED_PATHS, censor: '[redacted]' },
    hooks: { streamWrite: redactorOf(env) },
  };
  return destination ? pino(options, destination) : pino(options);
}
