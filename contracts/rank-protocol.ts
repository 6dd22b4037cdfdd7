/**
 * What the agent and the rank processes of one machine say to each other over the IPC channel. Both ends come from one
 * build, so the messages are types and not schemas; `kind` tells them apart. The channel uses structured clone
 * ("advanced" serialization): a `Uint8Array` arrives as one.
 *
 * Life of a rank: start → published/deliver (rendezvous) → connected → [loaded → proceed] → running → memory, stepped …
 * shard … → stopped → exit. Heartbeats run all the time. `failed` may end it at any point.
 */
import type { Execution } from './execution.js';
import type {
  ParamRecord,
  RangeChecksum,
  Sharding,
  ShardRecord,
  StateName,
  TrainingPosition,
} from './state-records.js';
import type { TraceHeaders } from './trace-context.js';
import type { ResolvedJobSpec, StepSeconds, TrustRatios } from './types.js';

export type * from './state-records.js';

/**
 * Bits that a rank may pass to a step. The step's exchange ORs them over all ranks, so that each rank sees the same
 * bits after the same step and no two ranks can take different decisions.
 */
export const STEP_FLAGS = {
  /** Save and stop. */
  pause: 1,
  /** Stop without saving. */
  cancel: 2,
  /** Save and go on. */
  checkpoint: 4,
  /** Both snapshot buffers of some rank still travel: a periodic save is left out on every rank. */
  snapshots_busy: 8,
} as const;

/** How to reach the object store. Credentials come from the environment, or from the agent of the same machine. */
export interface ObjectStoreLocation {
  url: string;
  s3_endpoint: string | null;
}

/** How often and how patiently something is tried. Delays double from the first to the longest. */
export interface RetryPolicy {
  attempts: number;
  first_delay_ms: number;
  max_delay_ms: number;
}

/** How much of a checkpoint is taken over. */
export type Restore = 'full' | 'weights' | 'weights_16bit';

/** What the ranks load before their first step. */
export type LoadSource = CheckpointLoad | ModelLoad;

export interface CheckpointLoad {
  kind: 'checkpoint';
  /** Key of its directory. */
  directory: string;
  /** `full`: go on where it was. Otherwise only the weights, as they are or rounded to 16 bits, and training begins. */
  restore: Restore;
  /** Whether the job goes on where it was, as the one that wrote it would: then nothing of its position may change. */
  own: boolean;
}

/** An uploaded model. */
export interface ModelLoad {
  kind: 'model';
  /** `full`: with the state of the optimizer that was uploaded with it. */
  restore: 'full' | 'weights';
  /** Key of its folder. */
  directory: string;
}

/** All that a rank must know. Everything but `rank` is the same for the ranks of one machine in one generation. */
export interface StartMessage {
  kind: 'start';
  job_id: string;
  execution: Execution;
  /** What the rank's work is a part of. */
  trace: TraceHeaders;
  /** Names the generation: directories of its checkpoints can not meet those of another one. */
  nonce: string;
  rank: number;
  world_size: number;
  /** What it computes on: the CPU, or the one GPU that CUDA shows it. */
  device: 'cpu' | 'cuda';
  threads: number;
  /** Ranks of the job on this machine; their numbers follow one another. */
  local_ranks: number;
  spec: ResolvedJobSpec;
  /** Absolute path of the tokens to train on; contracts/token-file.ts has the layout. */
  token_file: string;
  /** The same of those to evaluate on; null: nothing is set aside. */
  validation_file: string | null;
  object_store: ObjectStoreLocation;
  /** What to begin with; null begins with fresh parameters. */
  load: LoadSource | null;
  comm: { bind_address: string; timeout_ms: number };
  heartbeat_ms: number;
  /** A rank that hears nothing from the agent of its machine for so long ends: no lease of it holds any more. */
  agent_silence_ms: number;
  /** Of the job, as measured so far: what `checkpoint.auto` reckons with. */
  failures_per_second: number;
  /** For periodic saves, and for the last one before the rank stops, on which the job's progress depends. */
  save: { periodic: RetryPolicy; final: RetryPolicy };
}

/** A rendezvous key of some rank, the receiver's own ones included. */
export interface DeliverMessage {
  kind: 'deliver';
  key: string;
  value: Uint8Array;
}

/** Bits to pass to every step from the next one on; replaces the ones before. */
export interface FlagsMessage {
  kind: 'flags';
  flags: number;
  /** Number of the newest request to save and go on, which rank 0 alone carries into a step; 0 for none. */
  save_request: number;
}

/** Every byte that all ranks loaded has been checked. */
export interface ProceedMessage {
  kind: 'proceed';
}

/** Nothing more is needed: close and exit with 0. */
export interface ExitMessage {
  kind: 'exit';
}

/** The agent of this machine lives; it says so all the time, as ranks do. */
export interface AliveMessage {
  kind: 'alive';
}

/** Credentials of one job for the object store, which end by themselves. */
export interface SessionCredentials {
  access_key_id: string;
  secret_access_key: string;
  session_token: string;
  /** RFC 3339. */
  expires_at: string;
}

/**
 * From the agent of this machine, which keeps them: the first ones before `start`, or none at all; later ones replace those in use. They
 * never leave the machine.
 */
export interface CredentialsMessage {
  kind: 'credentials';
  credentials: SessionCredentials;
}

/** What only the agent of the same machine says. */
export type LocalMessage = AliveMessage | CredentialsMessage;

export type AgentMessage = StartMessage | DeliverMessage | FlagsMessage | ProceedMessage | ExitMessage;

export interface ConnectedMessage {
  kind: 'connected';
  /** In canonical order. */
  params: ParamRecord[];
  /** Of the job's optimizer, in the order in which shards hold them. */
  states: StateName[];
  sharding: Sharding;
  /** Scope of bit-exactness, e.g. `cpu-avx512bf16/2`. */
  numerics_fingerprint: string;
}

/** Once, after the first step of a generation: by then every buffer has its size. */
export interface MemoryMessage {
  kind: 'memory';
  /** Bytes that this rank has allocated, by part. */
  parts: Record<string, number>;
}

export interface LoadedMessage {
  kind: 'loaded';
  ranges: RangeChecksum[];
}

export interface RunningMessage {
  kind: 'running';
  /** Steps done before the first one of this generation. */
  step: number;
}

/** One step, reported by rank 0. */
export interface SteppedMessage {
  kind: 'stepped';
  step: number;
  loss: number;
  aux_loss: number | null;
  grad_norm: number;
  lr: number;
  /** Empty but for LAMB. */
  trust_ratios: TrustRatios[];
  /** Places of this step's sequences, whether they count as targets or not; the same in every step. */
  tokens: number;
  finite: boolean;
  skipped_steps: number;
  /** By what the loss of this step was multiplied; 1 without loss scaling. */
  loss_scale: number;
  seconds: StepSeconds;
  /** Of the validation data, with the parameters after this step; null after steps that are not evaluated. */
  evaluation: Evaluation | null;
}

export interface Evaluation {
  /** Mean over all targets, in nats per token; the same bits on any number of ranks. */
  loss: number;
  /** Targets that count. */
  tokens: number;
  sequences: number;
  seconds: number;
}

/** Which save a report belongs to; equal on all ranks. */
export interface SaveRef extends TrainingPosition {
  /** Name of the checkpoint's directory. */
  directory: string;
}

export interface ShardMessage {
  kind: 'shard';
  save: SaveRef;
  shard: ShardRecord;
  /** This rank's share of the state digest, 32 hexadecimal digits. */
  digest_part: string;
  /** The request to save that it answers; 0 for none, and on all ranks but the first. */
  save_request: number;
  cost: SaveCost;
}

/** What one rank's part of a save took. */
export interface SaveCost {
  /** In which the training stood still. */
  stall_seconds: number;
  /** In which the shard travelled, retries included. */
  write_seconds: number;
}

export interface RankError {
  code: string;
  message: string;
}

export interface ShardFailedMessage {
  kind: 'shard_failed';
  save: SaveRef;
  error: RankError;
}

/** The rank stopped after `step`; everything that it saves is stored or reported as failed. */
export interface StoppedMessage {
  kind: 'stopped';
  step: number;
  /** Why, as agreed by all ranks; 0 at the end of training. */
  flags: number;
}

export interface HeartbeatMessage {
  kind: 'heartbeat';
  step: number;
}

export interface PublishMessage {
  kind: 'publish';
  key: string;
  value: Uint8Array;
}

/** The rank can't go on and exits with 1. */
export interface FailedMessage {
  kind: 'failed';
  error: RankError;
  step: number;
}

export type RankMessage =
  | HeartbeatMessage
  | PublishMessage
  | ConnectedMessage
  | LoadedMessage
  | RunningMessage
  | MemoryMessage
  | SteppedMessage
  | ShardMessage
  | ShardFailedMessage
  | StoppedMessage
  | FailedMessage;
