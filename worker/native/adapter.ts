/**
 * The only door from the worker to the native core. Everything else in `worker/` sees `NativeCore`, so that the agent
 * never loads the addon and tests can put another core in its place.
 */
import {
  castToBf16,
  fingerprint,
  type ModelConfig,
  type ParamInfo,
  paramTable,
  Trainer,
  type TrainerConfig,
} from '../../native/js/index.js';

export type {
  ModelConfig,
  ParamInfo,
  Slice,
  Snapshot,
  SnapshotSlice,
  StateName,
  StepResult,
  TrainerConfig,
} from '../../native/js/index.js';

/** One rank's trainer: the public methods of native/js' Trainer, which documents them. */
export type RankTrainer = Pick<Trainer, keyof Trainer>;

export interface NativeCore {
  createTrainer(config: TrainerConfig, onRendezvous: (key: string, value: Uint8Array) => void): RankTrainer;
  /** Parameters in canonical order. */
  paramTable(model: ModelConfig): ParamInfo[];
  /** Scope of bit-exactness on this machine. */
  fingerprint(): string;
  /** fp32 bytes → bf16 bytes, rounded to nearest even. */
  castToBf16(fp32: Uint8Array): Uint8Array;
}

export const nativeCore: NativeCore = {
  createTrainer: (config, onRendezvous) => Trainer.create(config, onRendezvous),
  paramTable,
  fingerprint,
  castToBf16,
};
