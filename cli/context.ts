import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { Zerofleet } from '../client/index.js';
import { plainText, type Warning } from '../contracts/index.js';

/** What a command needs of the world; a test gives it another one. */
export interface World {
  env: Readonly<Record<string, string | undefined>>;
  stdin: AsyncIterable<Uint8Array>;
  stdout: Writable & { isTTY?: boolean };
  stderr: Writable;
  /** Aborted by Ctrl-C. */
  signal: AbortSignal;
}

/** The options that every command has. */
export interface GlobalOptions {
  url?: string;
  apiKey?: string;
  json?: boolean;
}

/** A problem that a person can put right, with the words for it. `exitCode` as docs/cli.md lists them. */
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

/** One command's connection and output. */
export class Context {
  readonly client: Zerofleet;
  readonly json: boolean;
  /** The message after Ctrl-C: it says what becomes of the work and how to continue. */
  farewell = 'interrupted';

  constructor(
    readonly world: World,
    options: GlobalOptions,
  ) {
    this.client = new Zerofleet(connectionOf(world.env, options));
    this.json = options.json ?? false;
  }

  /** Ctrl-C. */
  get signal(): AbortSignal {
    return this.world.signal;
  }

  /** True where lines may be drawn anew in place. */
  get interactive(): boolean {
    return !this.json && this.world.stdout.isTTY === true;
  }

  print(text: string): void {
    this.world.stdout.write(`${text}\n`);
  }

  /** With --json the value on one line, else the text. */
  show(value: unknown, text: () => string): void {
    this.print(this.json ? asciiControls(JSON.stringify(value)) : plainLines(text()));
  }

  /** Says what has no effect. With --json it is in the answer as well, and here for who looks at it. */
  warn(warnings: readonly Warning[] = []): void {
    for (const { pointer, message } of warnings)
      this.world.stderr.write(`${plainLines(`warning: ${pointer}: ${message}`)}\n`);
  }

  /** A remark for people, which no program should read. */
  note(text: string): void {
    if (!this.json) this.world.stderr.write(`${plainLines(text)}\n`);
  }
}

/** Names and messages come from anybody: nothing in them is a command to this terminal. */
export function plainLines(text: string): string {
  return text.split('\n').map(plainText).join('\n');
}

/** JSON leaves some control characters as they are; escaped they mean the same. */
function asciiControls(json: string): string {
  return json.replace(
    /[\p{Cc}\p{Bidi_Control}]/gu,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/**
 * Where the API is, and the key for it.
 * @throws CliError when there is no key, or no URL
 */
export function connectionOf(
  env: World['env'],
  { url, apiKey }: GlobalOptions,
): { baseUrl: string; apiKey: string } {
  const baseUrl = url ?? env.ZEROFLEET_URL ?? 'http://127.0.0.1:8080';
  if (!URL.canParse(baseUrl)) throw new CliError(`'${baseUrl}' is not a URL`, EXIT.usage);
  return { baseUrl, apiKey: apiKey ?? findKey(env) };
}

/** The key of the environment, else the one that a stack on this machine keeps in its data directory. */
function findKey(env: World['env']): string {
  if (env.ZEROFLEET_API_KEY) return env.ZEROFLEET_API_KEY;
  const file = join(env.ZEROFLEET_DATA_DIR ?? '.zerofleet', 'api-key');
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    throw new CliError(
      `no API key: set ZEROFLEET_API_KEY, use --api-key, or run this where ${file} is (zerofleet up makes it)`,
      EXIT.usage,
    );
  }
}

/** Makes an action of a command out of a function that gets the connection first, then the arguments and options. */
export type Run = <A extends unknown[]>(
  action: (context: Context, ...rest: A) => Promise<unknown>,
) => (...rest: A) => Promise<void>;
