/** Messages of a rank to its agent; rank-protocol.ts has those of the agent, and their order. */
import type {
  EarlyStoppingState,
  ParamRecord,
  RangeChecksum,
  SaveCost,
  SaveRef,
  Sharding,
  ShardRecord,
  StateName,
} from './state-records.js';
import type { PreferenceMetrics, StepSeconds, TrustRatios } from './types.js';

export interface ConnectedMessage {
  kind: 'connected';
  /** In canonical order. */
  params: ParamRecord[];
  /** States of the job's optimizer, in the order of shards. */
  states: StateName[];
  sharding: Sharding;
  /** Scope of bit-exactness, e.g. `cpu-avx512bf16/2`. */
  numerics_fingerprint: string;
}

export interface LoadedMessage {
  kind: 'loaded';
  ranges: RangeChecksum[];
  /** Null without adapters. */
  base: LoadedBase | null;
}

export interface LoadedBase {
  ranges: RangeChecksum[];
  /** This rank's share of the digest of the base, 32 hexadecimal digits. */
  digest_part: string;
}

export interface RunningMessage {
  kind: 'running';
  /** Completed steps before the first one of this generation. */
  step: number;
}

/** One step, reported by rank 0. */
export interface SteppedMessage {
  kind: 'stepped';
  step: number;
  loss: number;
  aux_loss: number | null;
  /** Null without a preference objective. */
  preference: PreferenceMetrics | null;
  /** Means of the metrics of the passes of a step of calls, over targets; empty for other steps. */
  passes: Record<string, number>;
  grad_norm: number;
  lr: number;
  /** Empty except for LAMB. */
  trust_ratios: TrustRatios[];
  /**
   * Useful tokens of a step: those of its sequences without padding, including tokens that are not targets. The mean
   * over the data, so it is the same in every step. In a session, the tokens of the step's rows.
   */
  tokens: number;
  /** Useful tokens of all steps so far: a function of the step, also after a resume. */
  total_tokens: number;
  /** Share of padding in the sequences, likewise. */
  padding: number;
  finite: boolean;
  skipped_steps: number;
  /** Loss scale of this step; 1 without loss scaling. */
  loss_scale: number;
  seconds: StepSeconds;
  /** Evaluations with the parameters after this step; none after most steps. */
  evaluations: Evaluation[];
  /** State of early stopping after this step; null without it. */
  early_stopping: EarlyStoppingState | null;
}

export interface Evaluation {
  name: string;
  /**
   * Mean over all targets, in nats per token, or over the units of a preference objective; bit-identical on any number
   * of ranks.
   */
  loss: number;
  /** Only with a preference objective. */
  preference?: PreferenceMetrics;
  /** Targets that count. */
  tokens: number;
  sequences: number;
  seconds: number;
}

/** A part of the result of rank 0's next `called`: a result may have many megabytes, which nobody reads at once. */
interface ResultPartMessage {
  kind: 'result_part';
  bytes: Uint8Array;
}

/** A call of a session has been run, or it was skipped because it has a result and changes nothing. */
export interface CalledMessage {
  kind: 'called';
  number: number;
  /** Steps done after it. */
  step: number;
  /**
   * UTF-8 of the JSON of its result, behind the parts that were sent, of rank 0; null on other ranks, for a call that
   * had a result and is no error, and for a call whose result is the checkpoint of `step`.
   */
  result: Uint8Array | null;
  /** This rank's share of the state digest, after a change of the state; null after another call. */
  digest_part: string | null;
}

/** Rank 0 asks whether the checkpoint of a `load_state` may be loaded. */
export interface LoadCallMessage {
  kind: 'load_call';
  number: number;
  /** Id of the checkpoint. */
  checkpoint: string;
  /** Key of its directory. */
  directory: string;
}

/** Every rank asks whether to save its step now. */
export interface SaveCallMessage {
  kind: 'save_call';
  step: number;
  /** `final`: what follows needs the save, so a save of the step that is in progress must end first. */
  policy: 'periodic' | 'final';
  /** True if earlier saves hold all of the rank's snapshots. */
  is_busy: boolean;
}

/** Messages about the calls of a session. */
export type CallMessage = ResultPartMessage | CalledMessage | LoadCallMessage | SaveCallMessage;

export interface ShardMessage {
  kind: 'shard';
  save: SaveRef;
  shard: ShardRecord;
  /** This rank's share of the state digest, 32 hexadecimal digits. */
  digest_part: string;
  /** Likewise of the base; null without adapters. */
  base_digest_part: string | null;
  /** Number of the save request that it answers; 0 for none, and on all ranks but the first. */
  save_request: number;
  cost: SaveCost;
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

/** The rank stopped after `step`; all its saves are stored or reported as failed. */
export interface StoppedMessage {
  kind: 'stopped';
  step: number;
  /** Reason as agreed by all ranks; 0 at the end of training. */
  flags: number;
}

/** Sent periodically, and after the first step of a generation: all buffers are allocated by then. */
export interface HeartbeatMessage {
  kind: 'heartbeat';
  step: number;
  /**
   * On the CPU, the resident set of this rank's process; on a GPU, what its trainer has allocated, 0 before the first
   * step.
   */
  memory_bytes: number;
  /** CPU time of the process so far. */
  cpu_seconds: number;
  /** Bytes that the rank has sent to other ranks so far. */
  sent_bytes: number;
  /** Share of time in which the rank's GPU is busy; null on the CPU, or where the driver does not measure it. */
  gpu_busy: number | null;
  /** Age of the process. */
  uptime_seconds: number;
}

interface PublishMessage {
  kind: 'publish';
  key: string;
  value: Uint8Array;
}

/** The rank cannot continue and exits with 1. */
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
  | SteppedMessage
  | CallMessage
  | ShardMessage
  | ShardFailedMessage
  | StoppedMessage
  | FailedMessage;
