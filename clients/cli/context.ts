import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { plainText, type Warning } from '../../contracts/index.js';
import { Zerofleet } from '../typescript/index.js';
import { type Columns, tableOf } from './format.js';

/** Environment of a command; replaced in tests. */
export interface Environment {
  env: Readonly<Record<string, string | undefined>>;
  stdin: AsyncIterable<Uint8Array>;
  stdout: Writable & { isTTY?: boolean; columns?: number };
  stderr: Writable;
  /** Directory of this installation, with its package.json and programs. */
  root: string;
  /** Aborted by Ctrl-C. */
  signal: AbortSignal;
}

/** Options of every command. */
export interface GlobalOptions {
  url?: string;
  apiKey?: string;
  json?: boolean;
}

/** An error that the user can fix, with its message. `exitCode` as docs/cli.md lists them. */
export class CliError extends Error {
  override readonly name = 'CliError';

  constructor(
    message: string,
    readonly exitCode = 1,
  ) {
    super(message);
  }
}

export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, interrupted: 130 } as const;

/** Connection and output of one command. */
export class Context {
  readonly client: Zerofleet;
  readonly json: boolean;
  /** Message after Ctrl-C: it tells the state of the work and how to continue. */
  interruptMessage = 'interrupted';

  constructor(
    readonly environment: Environment,
    options: GlobalOptions,
  ) {
    this.client = new Zerofleet(connectionOf(environment.env, options));
    this.json = options.json ?? false;
  }

  /** Aborted by Ctrl-C. */
  get signal(): AbortSignal {
    return this.environment.signal;
  }

  /** True if lines can be redrawn in place. */
  get interactive(): boolean {
    return !this.json && this.environment.stdout.isTTY === true;
  }

  /** Characters of a line; output that no terminal shows is not limited. */
  get width(): number {
    return this.environment.stdout.columns ?? Number.POSITIVE_INFINITY;
  }

  print(text: string): void {
    this.environment.stdout.write(`${text}\n`);
  }

  /** Prints a part of a line. */
  write(text: string): void {
    this.environment.stdout.write(plainLines(text));
  }

  /** Prints the value on one line with --json, otherwise the text. */
  show(value: unknown, text: () => string): void {
    this.print(this.json ? asciiControls(JSON.stringify(value)) : plainLines(text()));
  }

  /** Shows the records of a list as a table. Without records, `none`. */
  list<T>(records: readonly T[], columns: Columns<T>, none: string): void {
    this.show(records, () => tableOf(records, columns, none, this.width));
  }

  /** Prints warnings about settings or data. With --json they are also in the answer. */
  warn(warnings: readonly Warning[] = []): void {
    for (const { pointer, message } of warnings)
      this.environment.stderr.write(`${plainLines(`warning: ${pointer}: ${message}`)}\n`);
  }

  /** Prints a remark for users on standard error. */
  note(text: string): void {
    if (!this.json) this.environment.stderr.write(`${plainLines(text)}\n`);
  }
}

/** Strips terminal control sequences from text of unknown origin, such as names and messages. */
export function plainLines(text: string): string {
  return text.split('\n').map(plainText).join('\n');
}

/** Escapes control characters that JSON leaves unescaped. */
function asciiControls(json: string): string {
  return json.replace(
    /[\p{Cc}\p{Bidi_Control}]/gu,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** URL of the API and its key. @throws CliError when there is no key, or no URL */
export function connectionOf(
  env: Environment['env'],
  { url, apiKey }: GlobalOptions,
): { baseUrl: string; apiKey: string } {
  const given = apiKey ?? (env.ZEROFLEET_API_KEY || undefined);
  // A given key is not sent to an address that a file of some directory names.
  const stored = given === undefined ? readData(env, 'address') : undefined;
  const baseUrl = url ?? env.ZEROFLEET_URL ?? stored ?? 'http://127.0.0.1:8080';
  if (!URL.canParse(baseUrl)) throw new CliError(`'${baseUrl}' is not a URL`, EXIT.usage);
  return { baseUrl, apiKey: given ?? storedKey(env) };
}

/** The key in the data directory of a stack on this machine. */
function storedKey(env: Environment['env']): string {
  const key = readData(env, 'api-key');
  if (key !== undefined) return key;
  throw new CliError(
    `no API key: set ZEROFLEET_API_KEY, use --api-key, or run this where ${dataFile(env, 'api-key')} exists (zerofleet up creates it)`,
    EXIT.usage,
  );
}

const dataFile = (env: Environment['env'], name: string) =>
  join(env.ZEROFLEET_DATA_DIR ?? '.zerofleet', name);

/** A file that a stack on this machine has written. */
function readData(env: Environment['env'], name: 'api-key' | 'address'): string | undefined {
  try {
    return readFileSync(dataFile(env, name), 'utf8').trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Converts a function of connection, arguments and options to a commander action. */
export type Run = <A extends unknown[]>(
  action: (context: Context, ...rest: A) => Promise<unknown>,
) => (...rest: A) => Promise<void>;
