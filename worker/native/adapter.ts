/**
 * The only door from the worker to the native core. Everything else in `worker/` sees `NativeCore`, so that the agent
 * never loads the addon and tests can put another core in its place.
 */
import type { ResolvedJobSpec } from '../../contracts/index.js';
import type { Sharding } from '../../contracts/rank-protocol.js';
import { shardingOf } from '../../contracts/shard-layout.js';
import {
  type CudaDevice,
  castTo16Bit,
  cudaDevices,
  type DeviceKind,
  endWithParent,
  fingerprint,
  type Gpu,
  gpus,
  type ModelConfig,
  type ParamInfo,
  paramTable,
  Sampler,
  type StateName,
  stateNames,
  stayOnNode,
  Trainer,
  type TrainerConfig,
  watchGpu,
} from '../../native/js/index.js';

export type {
  CudaDevice,
  DeviceKind,
  Gpu,
  ModelConfig,
  ParamInfo,
  SampleOptions,
  Slice,
  Snapshot,
  SnapshotSlice,
  StepResult,
  TrainerConfig,
} from '../../native/js/index.js';
export { endWithParent };

/** One rank's trainer: the methods of native/js' Trainer that a rank needs; they are documented there. */
export type RankTrainer = Omit<Trainer, 'lr'>;

/** native/js' Sampler, where it is documented. */
export type CoreSampler = Pick<Sampler, 'setParam' | 'sample' | 'close'>;

export interface NativeCore {
  /** Draws tokens from weights. */
  createSampler(model: ModelConfig, threads: number): CoreSampler;
  createTrainer(config: TrainerConfig, onRendezvous: (key: string, value: Uint8Array) => void): RankTrainer;
  /** Parameters in canonical order. */
  paramTable(model: ModelConfig): ParamInfo[];
  /** States that an optimizer keeps of a parameter that it trains, `master` first. */
  stateNames(optimizer: TrainerConfig['optimizer']): StateName[];
  /** How it shards the state of a job. */
  sharding(zero: ResolvedJobSpec['zero']): Sharding;
  /** Scope of bit-exactness of a rank on this machine. */
  fingerprint(device: DeviceKind): string;
  /** Keeps this process on the memory and processors of one NUMA node; see native/js. */
  stayOnNode(local_rank: number, local_ranks: number, threads: number): boolean;
  /** GPUs of this machine, as the driver tells of them. */
  gpus(): Gpu[];
  /** Listens to what the driver reports of a GPU. The function returns the XIDs since its last call. */
  watchGpu(uuid: string): () => number[];
  /** GPUs that CUDA shows this process; null in a build without CUDA. */
  cudaDevices(): CudaDevice[] | null;
  /** fp32 bytes → bf16 bytes, rounded to nearest even. */
  castTo16Bit(dtype: 'bf16' | 'fp16', fp32: Uint8Array): Uint8Array;
}

export const nativeCore: NativeCore = {
  createSampler: (model, threads) => Sampler.create(model, threads),
  createTrainer: (config, onRendezvous) => Trainer.create(config, onRendezvous),
  paramTable,
  stateNames,
  sharding: shardingOf,
  fingerprint,
  stayOnNode,
  gpus,
  watchGpu,
  cudaDevices,
  castTo16Bit,
};
