/**
 * Messages between the agent and the rank processes of one machine over the IPC channel. Both ends come from one build,
 * so the messages are types without schemas; `kind` distinguishes them. The channel uses structured clone ("advanced"
 * serialization): a `Uint8Array` arrives as one.
 *
 * Life of a rank: start → published/deliver (rendezvous) → connected → [loaded → proceed] → running → stepped … shard …
 * → stopped → exit. Heartbeats run all the time. `failed` may end it at any point. A session's ranks take their steps
 * from calls: calls → called … [load_call → load_answer → loaded → proceed] … [save_call → save_answer] … stepped …
 * shard …
 */
import type { Execution } from './execution.js';
import type { RankError } from './rank-messages.js';
import type { BaseLoad, LoadSource } from './state-records.js';
import type { TraceHeaders } from './trace-context.js';
import type { TrainableJobSpec } from './types.js';

export type * from './rank-messages.js';
export type * from './state-records.js';

/**
 * Flags that a rank may pass to a step. The step's exchange ORs them over all ranks, so that all ranks see the same
 * flags after the same step and decide alike.
 */
export const STEP_FLAGS = {
  /** Save and stop. */
  pause: 1,
  /** Stop without saving. */
  cancel: 2,
  /** Save and go on. */
  checkpoint: 4,
  /** Both snapshot buffers of some rank are still being written: every rank skips a periodic save. */
  snapshots_busy: 8,
} as const;

/** Location of the object store. Credentials come from the environment, or from the agent of the same machine. */
export interface ObjectStoreLocation {
  url: string;
  s3_endpoint: string | null;
}

/** Number of attempts and their backoff, which doubles from the first to the longest. */
export interface RetryPolicy {
  attempts: number;
  first_delay_ms: number;
  max_delay_ms: number;
}

/** Configuration of a rank. All fields but `rank` are equal for the ranks of one machine in one generation. */
export interface StartMessage {
  kind: 'start';
  job_id: string;
  execution: Execution;
  /** Trace of the rank's work. */
  trace: TraceHeaders;
  /** Identifies the generation: its checkpoint directories differ from those of any other one. */
  nonce: string;
  rank: number;
  world_size: number;
  /** Device of the rank: the CPU, or the single GPU visible to CUDA. */
  device: 'cpu' | 'cuda';
  threads: number;
  /** Ranks of the job on this machine, with consecutive numbers. */
  local_ranks: number;
  spec: TrainableJobSpec;
  /** Training tokens, by dataset. */
  training_files: TrainingFile[];
  /** In the order in which they are evaluated. */
  evaluation_files: EvaluationFile[];
  /** Digest of all these tokens. */
  tokens_digest: string;
  object_store: ObjectStoreLocation;
  /** Initial state; null for fresh parameters. */
  load: LoadSource | null;
  /** Null without adapters. */
  base: BaseLoad | null;
  comm: { bind_address: string; timeout_ms: number };
  heartbeat_ms: number;
  /** A rank exits after this time without a message of its agent: its leases have expired then. */
  agent_silence_ms: number;
  /** Measured failure rate of the job, used by `checkpoint.auto`. */
  failures_per_second: number;
  /**
   * Retries of periodic saves, and of those that the job needs: the final one before the rank stops, and that of an
   * improved evaluation.
   */
  save: { periodic: RetryPolicy; final: RetryPolicy };
}

/** Tokens of a dataset to train on; contracts/token-file.ts has the layout. */
export interface TrainingFile {
  /** Absolute path. */
  path: string;
  /** Share of the training, relative to the weights of the other files; an integer. */
  weight: number;
  /** Share of its sequences that is no padding. */
  useful_share: number;
}

/** Tokens to evaluate on. */
export interface EvaluationFile {
  /** Name of the evaluation. */
  name: string;
  /** Absolute paths of the tokens, which are evaluated as one. */
  paths: string[];
}

/** A rendezvous key of any rank, including the receiver's own. */
export interface DeliverMessage {
  kind: 'deliver';
  key: string;
  value: Uint8Array;
}

/** Flags for every step from the next one on; replaces the previous ones. */
interface FlagsMessage {
  kind: 'flags';
  flags: number;
  /** Number of the newest request to save and continue, which only rank 0 passes to a step; 0 for none. */
  save_request: number;
}

/**
 * Next work of a session's ranks. Each rank follows these messages one after the other. Their order is the same for all
 * ranks, so all ranks save and stop after the same call.
 */
export interface CallsMessage {
  kind: 'calls';
  /** The ranks run the calls up to this number first. */
  until: number;
  /** Calls up to this number had their results before this generation: those that change nothing are skipped. */
  answered: number;
  /** Then they save (`checkpoint`), or save and stop (`pause`), or stop (`cancel`); 0: nothing. */
  flags: number;
  /** Number of the save request that a save answers; 0 for none. */
  save_request: number;
}

/** Answer to `load_call`. */
export interface LoadAnswerMessage {
  kind: 'load_answer';
  /** Reason not to load the checkpoint, which is the result of the call; null: load it. */
  error: RankError | null;
}

/** Answer to the `save_call`s of all ranks. */
export interface SaveAnswerMessage {
  kind: 'save_answer';
  /** Nonce of the save. Null: no save, because the step has one, or because a rank is busy. */
  nonce: string | null;
}

/** All loaded bytes of all ranks have been verified. */
interface ProceedMessage {
  kind: 'proceed';
}

/** The work is complete: close and exit with 0. */
interface ExitMessage {
  kind: 'exit';
}

/** Heartbeat of the agent of this machine. */
interface AliveMessage {
  kind: 'alive';
}

/** Temporary credentials of one job for the object store. */
export interface SessionCredentials {
  access_key_id: string;
  secret_access_key: string;
  session_token: string;
  /** RFC 3339. */
  expires_at: string;
}

/**
 * Credentials from the agent of this machine. A job with credentials gets them before `start`, and renewed ones later
 * replace them. Credentials never leave the machine.
 */
export interface CredentialsMessage {
  kind: 'credentials';
  credentials: SessionCredentials;
}

/** Messages that only come from the agent of the same machine. */
export type LocalMessage = AliveMessage | CredentialsMessage;

export type AgentMessage =
  | StartMessage
  | DeliverMessage
  | FlagsMessage
  | CallsMessage
  | LoadAnswerMessage
  | SaveAnswerMessage
  | ProceedMessage
  | ExitMessage;
