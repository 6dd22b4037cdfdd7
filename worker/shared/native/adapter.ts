/**
 * Only module of the worker that imports the native core. The rest of `worker/` uses `NativeCore`, so that the agent
 * never loads the addon and tests can substitute another core.
 */
import type { Architecture } from '../../../contracts/architecture.js';
import type { ResolvedJobSpec } from '../../../contracts/index.js';
import type { Sharding, StateName } from '../../../contracts/rank-protocol.js';
import { shardingOf } from '../../../contracts/shard-layout.js';
import {
  type AdapterFactors,
  AnswerEngine,
  type AnswerEngineOptions,
  addOutputSquares,
  type CudaDevice,
  castTo16Bit,
  cudaDevices,
  cudaProblem,
  type DeviceKind,
  digestValues,
  endWithParent,
  fingerprint,
  type Gpu,
  gpus,
  initialValues,
  measureGpu,
  mergeAdapter,
  type ParamInfo,
  paramTable,
  type QuantizedShape,
  quantizedValues,
  stateNames,
  stayOnNode,
  Trainer,
  type TrainerConfig,
  watchGpu,
} from '../../../native/js/index.js';

export type {
  AdapterFactors,
  AnswerEngineOptions,
  CudaDevice,
  DrawnToken,
  Gpu,
  OptimStep,
  ParamInfo,
  PassLoss,
  PassResult,
  PassRows,
  QuantizedShape,
  SampledAnswer,
  SampleRequest,
  SequenceOptions,
  Slice,
  Snapshot,
  SnapshotSlice,
  StepResult,
  TrainerConfig,
} from '../../../native/js/index.js';

/** Trainer of one rank: the methods of native/js' Trainer that a rank needs, documented there. */
export type RankTrainer = Omit<Trainer, 'lr'>;

/** AnswerEngine of native/js, documented there. */
export type CoreEngine = Pick<
  AnswerEngine,
  | 'maxLength'
  | 'numBytes'
  | 'setParam'
  | 'add'
  | 'addAdapter'
  | 'removeAdapter'
  | 'cancel'
  | 'allow'
  | 'step'
  | 'close'
>;

export interface NativeCore {
  /** Creates an engine that generates answers. */
  createEngine(model: Architecture, options: AnswerEngineOptions): CoreEngine;
  createTrainer(config: TrainerConfig, onRendezvous: (key: string, value: Uint8Array) => void): RankTrainer;
  /** Parameters in canonical order. */
  paramTable(model: Architecture): ParamInfo[];
  /** States that a training keeps of a trained parameter, `master` first. */
  stateNames(config: TrainerConfig): StateName[];
  /** Sharding of a job's state. */
  sharding(zero: ResolvedJobSpec['zero']): Sharding;
  /** Numerics fingerprint of a rank on this machine. */
  fingerprint(device: DeviceKind): string;
  /** Makes the kernel end this process with its parent; see native/js. */
  endWithParent(): boolean;
  /** Binds this process to the memory and processors of one NUMA node; see native/js. */
  stayOnNode(localRank: number, localRanks: number, threads: number): boolean;
  /** GPUs of this machine, as the driver reports them. */
  gpus(): Gpu[];
  /** Subscribes to the driver's XID events of a GPU. The function returns the XIDs since its last call. */
  watchGpu(uuid: string): () => number[];
  /** Measures the share of time in which a GPU is busy; null where the driver does not. */
  measureGpu(uuid: string): () => number | null;
  /** GPUs that CUDA shows this process; null in a build without CUDA. */
  cudaDevices(): CudaDevice[] | null;
  /** Reason for which an installed driver shows no GPU to CUDA; null: it does, or there is no driver. */
  cudaProblem(): string | null;
  /** Converts fp32 bytes to 16-bit bytes, rounded to nearest even. */
  castTo16Bit(dtype: 'bf16' | 'fp16', fp32: Uint8Array): Uint8Array;
  /** Merges an adapter into elements of its matrix from `begin` on; see native/js. */
  mergeAdapter(adapter: AdapterFactors, begin: number, fp32: Uint8Array): Uint8Array;
  /** Values of a quantized matrix of the base, as products read them; see native/js. */
  quantizedValues(matrix: QuantizedShape, fp32: Uint8Array): Uint8Array;
  /** Elements of a parameter as a training with this seed begins, in fp32; see native/js. */
  initialValues(model: Architecture, seed: number, param: number, begin: number, end: number): Uint8Array;
  /** Part of the state digest of a parameter's values from a block on; see native/js. */
  digestValues(state: StateName, firstBlock: number, fp32: Uint8Array): string;
  /** Adds the squares of merged elements to the sums of their outputs; see native/js. */
  addOutputSquares(adapter: AdapterFactors, begin: number, fp32: Uint8Array, sums: Float64Array): void;
}

export const nativeCore: NativeCore = {
  createEngine: (model, options) => AnswerEngine.create(model, options),
  createTrainer: (config, onRendezvous) => Trainer.create(config, onRendezvous),
  paramTable,
  stateNames,
  sharding: shardingOf,
  fingerprint,
  endWithParent,
  stayOnNode,
  gpus,
  watchGpu,
  measureGpu,
  cudaDevices,
  cudaProblem,
  castTo16Bit,
  addOutputSquares,
  mergeAdapter,
  quantizedValues,
  initialValues,
  digestValues,
};
