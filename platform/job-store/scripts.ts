/** Loads the Lua commands and runs them: one JSON object in, a typed error or a plain reply out. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { isErrorCode, ZerofleetError } from '../../contracts/index.js';
import { redisError } from '../redis/connect.js';
import { projectRoot } from '../root.js';

export const COMMANDS = [
  'add_delivery',
  'announce_worker',
  'append_audit',
  'append_event',
  'append_logs',
  'apply_decision',
  'begin_request',
  'change_api_key',
  'change_document',
  'change_webhook',
  'claim_attempt',
  'close_world',
  'commit_checkpoint',
  'count_delivery',
  'create_job',
  'create_webhook',
  'delete_checkpoint',
  'delete_dataset',
  'delete_job',
  'delete_model',
  'delete_webhook',
  'expire_waiting',
  'find_worlds',
  'finish_job',
  'get_jobs',
  'hold_checkpoint',
  'hold_request',
  'lead',
  'note_delivery',
  'pin_checkpoint',
  'put_api_key',
  'put_document',
  'put_quota',
  'read_pools',
  'read_snapshot',
  'read_stream',
  'record_delivery',
  'reject_checkpoint',
  'release_attempt',
  'remove_checkpoint',
  'renew_lease',
  'report',
  'request',
  'request_redelivery',
  'requeue_abandoned',
  'reserve_upload',
  'restore_job',
  'retire_workers',
  'retry_job',
  'revoke_api_key',
  'rotate_api_key',
  'seal_world',
  'set_places',
  'touch_api_key',
  'transition',
  'update_job',
  'withdraw_worker',
] as const;
export type CommandName = (typeof COMMANDS)[number];

/** What a command answered after its leading 'ok'. */
export type CommandReply = unknown[];

const INCLUDE = /^--- @include (\w+)$/gm;

/** The text of a command with its includes put in place. */
export function commandSource(name: CommandName): string {
  const dir = join(projectRoot(), 'platform', 'job-store', 'commands');
  const read = (file: string) => readFileSync(join(dir, file), 'utf8');
  return read(`${name}.lua`).replace(INCLUDE, (_line, include: string) => read(`include/${include}.lua`));
}

export class CommandRunner {
  private readonly loaded = new Map<CommandName, { source: string; sha1: string }>();

  /** @param prefix what every key of the store begins with, braces included */
  constructor(
    private readonly redis: Redis,
    private readonly prefix: string,
  ) {
    for (const name of COMMANDS) {
      const source = commandSource(name);
      this.loaded.set(name, { source, sha1: createHash('sha1').update(source).digest('hex') });
    }
  }

  /**
   * Runs one command.
   * @param call the named arguments; undefined fields are absent in Lua
   * @throws ZerofleetError the command's own code, or `job_store_unavailable`
   */
  async run(name: CommandName, call: Record<string, unknown>): Promise<CommandReply> {
    const reply = await this.evaluate(name, JSON.stringify(call));
    const [status, ...rest] = reply as [string, ...unknown[]];
    if (status === 'ok') return rest;
    const [code, message] = rest as [string, string];
    if (!isErrorCode(code)) throw new ZerofleetError('internal_error', `${name} answered ${code}`);
    throw new ZerofleetError(code, message);
  }

  private async evaluate(name: CommandName, argument: string): Promise<unknown> {
    const { source, sha1 } = this.loaded.get(name) as { source: string; sha1: string };
    try {
      return await this.redis.evalsha(sha1, 1, this.prefix, argument).catch((error: Error) => {
        // A fresh or restarted server does not know the script yet.
        if (!error.message.startsWith('NOSCRIPT')) throw error;
        return this.redis.eval(source, 1, this.prefix, argument);
      });
    } catch (error) {
      throw redisError(error);
    }
  }
}
