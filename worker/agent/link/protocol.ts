/**
 * Messages between the leader of a world and a member, after each has proven in the TLS handshake that it knows the
 * token. All of them are JSON, the bytes of rendezvous keys as base64. Each side validates every message because it
 * does not trust the other.
 *
 *     leader                          member
 *                                ←    join {worker_id, host}      its worker in the world; the host is for display
 *                                ←    ready {tokens_digest} | refused {error}    its data is prepared, or can't be
 *     start {rank …}             →
 *     message {rank, message}    ↔    message {rank, message}     as in contracts/rank-protocol.ts
 *     kill {rank}                →
 *                                ←    line {rank, line}           of this rank's log
 *                                ←    ended {rank, end}           last message of this rank
 *                                ←    leaving                     the member asks to leave; it stays until its ranks
 *                                                                 have ended
 */

import type {
  AgentMessage,
  BaseLoad,
  CalledMessage,
  CallsMessage,
  FailedMessage,
  HeartbeatMessage,
  LoadAnswerMessage,
  LoadedMessage,
  LoadSource,
  RankMessage,
  RunningMessage,
  SaveAnswerMessage,
  SaveCallMessage,
  ShardFailedMessage,
  ShardMessage,
  StoppedMessage,
} from '../../../contracts/rank-protocol.js';
import { type Static, type TSchema, Type } from '../../../platform/schema.js';
import { type LogLine, MAX_MESSAGE } from '../supervisor/log-line.js';
import type { RankEnd } from '../supervisor/rank.js';
import { checked } from './schema.js';

const strict = { additionalProperties: false } as const;
const Count = Type.Integer({ minimum: 0 });
const Seconds = Type.Number({ minimum: 0 });
const Text = Type.String({ maxLength: 100_000 });
const Key = Type.String({ minLength: 1, maxLength: 1000 });
const Base64 = Type.String({ pattern: '^[A-Za-z0-9+/]*={0,2}$' });
const FileName = Type.String({ pattern: '^[A-Za-z0-9_-][A-Za-z0-9._-]*$', maxLength: 200 });
const Digest = Type.String({ pattern: '^sha256:[0-9a-f]{64}$' });
const Crc32c = Type.String({ pattern: '^[0-9a-f]{8}$' });
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const message = <K extends string, P extends Record<string, TSchema>>(kind: K, fields: P) =>
  Type.Object({ kind: Type.Literal(kind), ...fields }, strict);

const RankError = Type.Object({ code: Text, message: Text }, strict);

const Name = Type.String({ minLength: 1, maxLength: 200 });
const Join = message('join', { worker_id: Name, host: Name });
export const asJoin = checked(Join);

const SaveRef = Type.Object(
  {
    directory: FileName,
    calls: nullable(Type.Object({ number: Count, tokens: Count }, strict)),
    reference: nullable(
      Type.Object(
        { bytes: Count, sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }), objective: Name },
        strict,
      ),
    ),
    step: Count,
    optimizer_steps: Count,
    skipped_steps: Count,
    loss_scaler: Type.Object(
      {
        scale: Type.Number(),
        iteration: Type.Integer(),
        last_overflow_iteration: Type.Integer(),
        hysteresis: Type.Integer(),
        skipped_in_a_row: Count,
      },
      strict,
    ),
    eval_losses: Type.Record(Name, Type.Number()),
    early_stopping: nullable(
      Type.Object(
        {
          best_eval_loss: nullable(Type.Number()),
          best_step: nullable(Count),
          evaluations_without_improvement: Count,
        },
        strict,
      ),
    ),
  },
  strict,
);

const Shard = Type.Object(
  {
    file: FileName,
    bytes: Count,
    data_begin: Count,
    sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    crc32c: Type.String({ pattern: '^[0-9a-f]+$' }),
  },
  strict,
);

const Range = Type.Object({ file: FileName, begin: Count, end: Count, crc32c: Crc32c }, strict);

const Heartbeat = message('heartbeat', {
  step: Count,
  memory_bytes: Count,
  cpu_seconds: Seconds,
  sent_bytes: Count,
  gpu_busy: nullable(Type.Number({ minimum: 0, maximum: 1 })),
  uptime_seconds: Seconds,
});
const DigestPart = Type.String({ pattern: '^[0-9a-f]{32}$' });
const Loaded = message('loaded', {
  ranges: Type.Array(Range),
  base: nullable(Type.Object({ ranges: Type.Array(Range), digest_part: DigestPart }, strict)),
});
const Running = message('running', { step: Count });
const ShardSaved = message('shard', {
  save: SaveRef,
  shard: Shard,
  digest_part: DigestPart,
  base_digest_part: nullable(DigestPart),
  save_request: Count,
  cost: Type.Object({ stall_seconds: Seconds, write_seconds: Seconds }, strict),
});
const ShardFailed = message('shard_failed', { save: SaveRef, error: RankError });
const Stopped = message('stopped', { step: Count, flags: Count });
const Called = message('called', {
  number: Count,
  step: Count,
  result: Type.Null(),
  digest_part: nullable(DigestPart),
});
const SaveCall = message('save_call', {
  step: Count,
  policy: Type.Union([Type.Literal('periodic'), Type.Literal('final')]),
  is_busy: Type.Boolean(),
});
const Failed = message('failed', { error: RankError, step: Count });
const Publish = message('publish', { key: Key, value: Base64 });

/** Checks at compile time that two types are equal: a field added to one must be added to the other. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : never;
type Plain<T> = T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
type Fits<S extends TSchema, T> = Same<Plain<Static<S>>, Plain<T>>;
true satisfies Fits<typeof Heartbeat, HeartbeatMessage> &
  Fits<typeof Loaded, LoadedMessage> &
  Fits<typeof Running, RunningMessage> &
  Fits<typeof ShardSaved, ShardMessage> &
  Fits<typeof ShardFailed, ShardFailedMessage> &
  Fits<typeof Stopped, StoppedMessage> &
  Fits<typeof Called, CalledMessage & { result: null }> &
  Fits<typeof SaveCall, SaveCallMessage> &
  Fits<typeof Failed, FailedMessage>;

/**
 * `connected`, `stepped`, `load_call` and the results of calls are sent by rank 0 for all ranks, and rank 0 always runs
 * on the leader.
 */
const FromRank = Type.Union([
  Heartbeat,
  Loaded,
  Running,
  Called,
  SaveCall,
  ShardSaved,
  ShardFailed,
  Stopped,
  Failed,
  Publish,
]);

const Signal = Type.Unsafe<NodeJS.Signals>(Type.String({ pattern: '^SIG[A-Z0-9]+$', maxLength: 20 }));
const Last = { step: nullable(Count), output: Type.Array(Text, { maxItems: 20 }) };
const End = Type.Union([
  message('failed', { error: RankError, ...Last }),
  message('exited', { code: Type.Integer(), ...Last }),
  message('signalled', { signal: Signal, ...Last }),
  message('out_of_memory', { signal: Signal, evidence: Text, ...Last }),
  message('silent', { silent_ms: Count, ...Last }),
  message('not_started', { message: Text, ...Last }),
  message('node_lost', { message: Text, ...Last }),
  message('killed', Last),
]);

const Line = Type.Object(
  {
    at: Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' }),
    stream: Type.Union([Type.Literal('stdout'), Type.Literal('stderr'), Type.Literal('worker')]),
    message: Type.String({ maxLength: MAX_MESSAGE }),
    truncated: Type.Boolean(),
    dropped: Count,
  },
  strict,
);
true satisfies Fits<typeof Line, LogLine>;

export const asMemberMessage = checked(
  Type.Union([
    message('ready', { tokens_digest: Digest }),
    message('refused', { error: RankError }),
    message('message', { rank: Count, message: FromRank }),
    message('line', { rank: Count, line: Line }),
    message('ended', { rank: Count, end: End }),
    message('leaving', {}),
  ]),
);
export type MemberMessage = Static<typeof Join> | ReturnType<typeof asMemberMessage>;

const Parts = Type.Union([Type.Literal('full'), Type.Literal('weights'), Type.Literal('weights_16bit')]);
const Load = Type.Union([
  message('checkpoint', { directory: Key, restore: Parts, own: Type.Boolean() }),
  message('model', { directory: Key, adapters_only: Type.Boolean(), restore: Parts }),
]);
const Base = Type.Union([
  message('seed', { seed: Type.Integer() }),
  Type.Object(
    { kind: Type.Union([Type.Literal('model'), Type.Literal('checkpoint')]), directory: Key },
    strict,
  ),
]);
true satisfies Fits<typeof Load, LoadSource> & Fits<typeof Base, BaseLoad>;

const Calls = message('calls', { until: Count, answered: Count, flags: Count, save_request: Count });
const LoadAnswer = message('load_answer', { error: nullable(RankError) });
const Nonce = Type.String({ pattern: '^[A-Za-z0-9]+$', maxLength: 64 });
const SaveAnswer = message('save_answer', { nonce: nullable(Nonce) });
true satisfies Fits<typeof Calls, CallsMessage> &
  Fits<typeof LoadAnswer, LoadAnswerMessage> &
  Fits<typeof SaveAnswer, SaveAnswerMessage>;

const ToRank = Type.Union([
  message('deliver', { key: Key, value: Base64 }),
  message('flags', { flags: Count, save_request: Count }),
  Calls,
  LoadAnswer,
  SaveAnswer,
  message('proceed', {}),
  message('exit', {}),
]);

/** Fields that only the leader knows; the member adds the rest of a rank's start message. */
const Start = message('start', {
  rank: Count,
  world_size: Type.Integer({ minimum: 1 }),
  nonce: Nonce,
  load: nullable(Load),
  base: nullable(Base),
  failures_per_second: Seconds,
});

export const asLeaderMessage = checked(
  Type.Union([Start, message('message', { rank: Count, message: ToRank }), message('kill', { rank: Count })]),
);
export type LeaderMessage = ReturnType<typeof asLeaderMessage>;
export type StartOrder = Static<typeof Start>;

/** Returns the wire form of a rank's message; null for messages that only rank 0 sends, on the leader. */
export function rankToWire(message: RankMessage): Static<typeof FromRank> | null {
  if (message.kind === 'connected' || message.kind === 'stepped') return null;
  if (message.kind === 'load_call' || message.kind === 'result_part') return null;
  if (message.kind === 'called') return { ...message, result: null };
  return message.kind === 'publish' ? { ...message, value: toBase64(message.value) } : message;
}

export function rankFromWire(message: Static<typeof FromRank>): RankMessage {
  return message.kind === 'publish' ? { ...message, value: fromBase64(message.value) } : message;
}

/** Returns the wire form of any message but `start`, which has a separate schema. */
export function agentToWire(message: Exclude<AgentMessage, { kind: 'start' }>): Static<typeof ToRank> {
  return message.kind === 'deliver' ? { ...message, value: toBase64(message.value) } : message;
}

export function agentFromWire(message: Static<typeof ToRank>): AgentMessage {
  return message.kind === 'deliver' ? { ...message, value: fromBase64(message.value) } : message;
}

/** Returns the wire form of an end; ends that the leader itself detects have none. */
export function endToWire(end: RankEnd): Static<typeof End> {
  if (end.kind === 'stuck') return { kind: 'killed', step: end.step, output: end.output };
  return end;
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

function fromBase64(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'base64'));
}
