/** Loads the Lua commands and runs them: one JSON object as argument, a typed error or a plain reply as result. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { isErrorCode, ZerofleetError } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { redisError } from '../../platform/redis/connect.js';

/** Commands by subject; `create_job` of jobs is state/jobs/commands/create_job.lua. */
const COMMANDS_OF = {
  access: [
    'append_audit',
    'change_api_key',
    'put_api_key',
    'put_quota',
    'revoke_api_key',
    'rotate_api_key',
    'touch_api_key',
  ],
  jobs: [
    'claim_attempt',
    'commit_checkpoint',
    'create_job',
    'delete_checkpoint',
    'delete_job',
    'expire_waiting',
    'finish_job',
    'get_jobs',
    'hold_checkpoint',
    'pin_checkpoint',
    'reject_checkpoint',
    'release_attempt',
    'remove_checkpoint',
    'renew_lease',
    'request',
    'restore_job',
    'retry_job',
    'transition',
    'update_job',
  ],
  pools: [
    'announce_worker',
    'apply_decision',
    'close_world',
    'find_worlds',
    'lead',
    'read_pools',
    'read_snapshot',
    'requeue_abandoned',
    'retire_workers',
    'seal_world',
    'set_places',
    'withdraw_worker',
  ],
  records: ['change_document', 'delete_document', 'put_document', 'reserve_upload'],
  repeats: ['begin_request', 'hold_request'],
  streams: ['append_event', 'append_logs', 'read_stream', 'report'],
  webhooks: [
    'add_delivery',
    'change_webhook',
    'count_delivery',
    'create_webhook',
    'delete_webhook',
    'note_delivery',
    'record_delivery',
    'request_redelivery',
  ],
} as const;
type Subject = keyof typeof COMMANDS_OF;
export type CommandName = (typeof COMMANDS_OF)[Subject][number];

const SUBJECTS: ReadonlyMap<CommandName, string> = new Map(
  Object.entries(COMMANDS_OF).flatMap(([subject, names]) => names.map((name) => [name, subject] as const)),
);
export const COMMANDS: readonly CommandName[] = [...SUBJECTS.keys()];

/** Reply of a command without its leading 'ok'. */
export type CommandReply = unknown[];

const INCLUDE = /^--- @include (\w+)$/gm;

/** Returns the source of a command with its includes inlined. */
export function commandSource(name: CommandName): string {
  const read = (subject: string, file: string) =>
    readFileSync(join(projectRoot(), 'state', subject, 'commands', `${file}.lua`), 'utf8');
  return read(SUBJECTS.get(name) as string, name).replace(INCLUDE, (_line, part: string) =>
    read('core', part),
  );
}

export class CommandRunner {
  private readonly loaded = new Map<CommandName, { source: string; sha1: string }>();

  /** @param prefix prefix of every key of the store, braces included */
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
        // A new or restarted server does not have the script cached.
        if (!error.message.startsWith('NOSCRIPT')) throw error;
        return this.redis.eval(source, 1, this.prefix, argument);
      });
    } catch (error) {
      throw redisError(error);
    }
  }
}
