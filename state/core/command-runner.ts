/** Runs the Lua commands: one JSON object as argument, a typed error or a plain reply as result. */
import type { Redis } from 'ioredis';
import { isErrorCode, ZerofleetError } from '../../contracts/index.js';
import { redisError } from '../../platform/redis/connect.js';
import { type CommandName, commandLibrary, FAMILY } from './library.js';

/** Reply of a command without its leading 'ok'. */
export type CommandReply = unknown[];

/** Maximum number of libraries of other versions on a server: more than a roll-out and its reversal need. */
const OTHERS_KEPT = 4;

export class CommandRunner {
  private readonly library = commandLibrary();
  private loading: Promise<void> | undefined;

  /** @param prefix prefix of every key of the store, braces included */
  constructor(
    private readonly redis: Redis,
    private readonly prefix: string,
  ) {}

  /**
   * Runs one command.
   * @param call the named arguments; undefined fields are absent in Lua
   * @throws ZerofleetError the command's own code, `job_store_unavailable`, or `invalid_configuration` (a Redis without
   *   functions)
   */
  async run(name: CommandName, call: Record<string, unknown>): Promise<CommandReply> {
    const reply = await this.callFunction(name, JSON.stringify(call));
    const [status, ...rest] = reply as [string, ...unknown[]];
    if (status === 'ok') return rest;
    const [code, message] = rest as [string, string];
    if (!isErrorCode(code)) throw new ZerofleetError('internal_error', `${name} answered ${code}`);
    throw new ZerofleetError(code, message);
  }

  private async callFunction(name: CommandName, argument: string): Promise<unknown> {
    const fcall = this.library.readOnly.has(name) ? 'fcall_ro' : 'fcall';
    const call = () => this.redis[fcall](`${this.library.name}_${name}`, 1, this.prefix, argument);
    try {
      return await call().catch(async (error: Error) => {
        // The server is new, was flushed, or failed over to a replica without this library.
        if (!error.message.includes('Function not found')) throw error;
        this.loading ??= this.load().finally(() => {
          this.loading = undefined;
        });
        await this.loading;
        return call();
      });
    } catch (error) {
      if ((error as Error).message.startsWith('ERR unknown command')) {
        throw new ZerofleetError('invalid_configuration', 'Redis 7.0 or later is needed, or Valkey', {
          cause: error,
        });
      }
      throw redisError(error);
    }
  }

  /**
   * Loads the library. Deletes those of other versions when there are too many: a program that still uses one loads it
   * again.
   */
  private async load(): Promise<void> {
    await this.redis.function('LOAD', 'REPLACE', this.library.text);
    const listed = (await this.redis.function('LIST', 'LIBRARYNAME', `${FAMILY}*`)) as string[][];
    const others = listed.map(([, name]) => name as string).filter((name) => name !== this.library.name);
    if (others.length <= OTHERS_KEPT) return;
    // Another process may delete them as well; the first one succeeds.
    await Promise.allSettled(others.map((name) => this.redis.function('DELETE', name)));
  }
}
