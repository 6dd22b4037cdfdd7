/**
 * The Lua commands as one Redis function library, named by the digest of its text. Programs of two versions use their
 * own libraries beside each other, and a library in use never changes.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../../platform/process/root.js';

/** Commands by subject; `create_job` of jobs is state/jobs/commands/create_job.lua. */
const COMMANDS_OF = {
  access: [
    'append_audit',
    'change_api_key',
    'create_session',
    'create_share',
    'end_session',
    'end_sessions',
    'put_api_key',
    'put_hub_token',
    'put_quota',
    'put_sign_in_code',
    'put_user',
    'renew_session',
    'revoke_api_key',
    'revoke_share',
    'rotate_api_key',
    'touch_api_key',
  ],
  calls: ['count_calls'],
  edits: ['commit_edit'],
  integrations: ['claim_forwards', 'save_forward'],
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
    'explain_wait',
    'find_worlds',
    'acquire_leader_lease',
    'read_pools',
    'read_snapshot',
    'requeue_abandoned',
    'retire_workers',
    'seal_world',
    'set_placements',
    'vacate_workers',
    'withdraw_worker',
  ],
  records: ['change_document', 'delete_document', 'put_document', 'reserve_upload'],
  repeats: ['begin_request', 'hold_request'],
  samples: [
    'abandon_sample',
    'find_samples',
    'read_messages',
    'release_sample',
    'renew_samples',
    'request_sample',
    'send_sample_message',
    'take_samples',
  ],
  streams: ['append_event', 'append_logs', 'read_blocks', 'read_metrics', 'read_stream', 'report'],
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

/** Files of core/commands, which all commands share: each uses only names of files before it. */
const SHARED = [
  'job',
  'attempt',
  'use',
  'checkpoint',
  'state',
  'record',
  'finish',
  'pool',
  'world',
  'delivery',
  'session',
  'sample',
];

/** Start of the names of all versions of the library. */
export const FAMILY = 'zerofleet_';

interface CommandLibrary {
  /** The function of a command is `<name>_<command>`. */
  name: string;
  text: string;
  /** Commands that write nothing. */
  readOnly: ReadonlySet<CommandName>;
}

export function commandLibrary(): CommandLibrary {
  const commands = Object.entries(COMMANDS_OF).flatMap(([subject, names]) =>
    names.map((name) => {
      const text = source(subject, name);
      return { name, text, flags: flagsOf(text) };
    }),
  );
  const body = [...SHARED.map((file) => source('core', file)), ...commands.map(registration)].join('\n');
  const name = FAMILY + createHash('sha256').update(body).digest('hex').slice(0, 16);
  const readOnly = commands.filter(({ flags }) => flags.includes('no-writes'));
  return {
    name,
    text: `#!lua name=${name}\nlocal library = '${name}'\n${body}`,
    readOnly: new Set(readOnly.map((command) => command.name)),
  };
}

interface CommandSource {
  name: CommandName;
  text: string;
  flags: string[];
}

/** Flags of a function: a line `--- @flags` in the header of its file. */
function flagsOf(text: string): string[] {
  return /^--- @flags (.+)$/m.exec(text)?.[1]?.split(' ') ?? [];
}

/** Makes a file the function of a command. */
function registration({ name, text, flags }: CommandSource): string {
  return `redis.register_function({
  function_name = library .. '_${name}',
  flags = { ${flags.map((flag) => `'${flag}'`).join(', ')} },
  callback = function(keys, arguments)
prefix, call = keys[1], cjson.decode(arguments[1])
${text}
end })`;
}

function source(subject: string, file: string): string {
  return readFileSync(join(projectRoot(), 'state', subject, 'commands', `${file}.lua`), 'utf8');
}
