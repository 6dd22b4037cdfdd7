import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Restore, StateName, TrainingPosition } from '../../contracts/state-records.js';
import { NativeError } from './error.js';
import type { SessionCalls } from './passes.js';
import type { RankMemory } from './rank-memory.js';
import type { EvalResult, StepResult } from './step-result.js';
import type { DeviceKind } from './trainer-config.js';

/** A GPU of this machine, as its driver reports it. */
export interface Gpu {
  /** GPU index, as nvidia-smi numbers them. */
  index: number;
  /** `GPU-…`; null if the driver can't report it. */
  uuid: string | null;
  name: string;
  memory_bytes: number;
  free_bytes: number;
  /** E.g. `9.0`. */
  compute_capability: string;
  /** Version. */
  driver: string;
  /** Newest version of CUDA that the driver knows. */
  cuda_driver: string;
  /** Why nothing should be computed on it; null: it is healthy. */
  problem: string | null;
}

/** A GPU that CUDA shows this process. */
export interface CudaDevice {
  uuid: string;
  /** The scope of bit-exactness of a rank on it. */
  fingerprint: string;
}

/** Formats of 16 bits. */
export type HalfDtype = 'bf16' | 'fp16';

/** The addon's exports, name by name as in native/binding/addon.cc. Only native/js sees these raw shapes. */
interface Addon {
  paramTable(model: object): RawParamInfo[];
  stateNames(config: object): StateName[];
  fingerprint(device: DeviceKind, cpuIsa: string): string;
  gpus(): Gpu[];
  watchGpu(uuid: string): () => number[];
  measureGpu(uuid: string): () => number | null;
  cudaDevices(): CudaDevice[] | null;
  cudaProblem(): string | null;
  castTo16Bit(dtype: HalfDtype, fp32: Uint8Array): Uint8Array;
  mergeAdapter(adapter: object, begin: number, fp32: Uint8Array): Uint8Array;
  quantizedValues(matrix: object, fp32: Uint8Array): Uint8Array;
  initialValues(model: object, seed: number, param: number, begin: number, end: number): Uint8Array;
  digestValues(state: StateName, firstBlock: number, fp32: Uint8Array): string;
  addOutputSquares(adapter: object, begin: number, fp32: Uint8Array, sums: Float64Array): void;
  endWithParent(): boolean;
  stayOnNode(localRank: number, localRanks: number, threads: number): boolean;
  measureOptimizer(options: object): Promise<OptimizerSeconds>;
  measureZeroMemory(options: object): Promise<ZeroMemory>;
  measureGemm(options: object): Promise<number[]>;
  kernelNames(): string[];
  measureKernel(options: object): Promise<KernelTimes>;
  measureBandwidth(options: object): Promise<number[]>;
  Trainer: new (config: object, onRendezvous: (key: string, value: Uint8Array) => void) => RawTrainer;
  AnswerEngine: new (model: object, options: object, cpuIsa: string) => RawAnswerEngine;
}

/** Bytes that one rank of the ZeRO core keeps, by part. */
export interface ZeroMemory {
  /** All parameters, compute dtype. */
  params: number;
  /** Owned. */
  grad_shard: number;
  /** Owned. */
  master: number;
  /** Owned: the other states of the optimizer. */
  moments: number;
  lane_accumulator: number;
  /** Buckets that are filled or in transit. */
  send_staging: number;
  /** Pieces that arrive. */
  receive_staging: number;
}

export interface RawParamInfo {
  index: number;
  name: string;
  shape: number[];
  numel: number;
  group: 'decay' | 'no_decay';
  /** Belongs to the frozen base under adapters. */
  base: boolean;
  /** Format of a quantized matrix of the base; null: the ranks hold it in the compute dtype. */
  quantization: 'nf4' | 'int8' | null;
  first_block: number;
  num_blocks: number;
}

export interface RawSlice {
  state: StateName;
  param: number;
  begin: number;
  end: number;
  byte_offset: number;
}

interface RawSnapshot extends TrainingPosition {
  slot: number;
  digest_part: string;
  buffer: ArrayBuffer;
  slices: RawSlice[];
}

export interface RawTrainer extends SessionCalls {
  deliver(key: string, value: Uint8Array): void;
  connect(): Promise<void>;
  initialize(first: number): Promise<void>;
  initializeBase(seed: number): Promise<void>;
  slices(): RawSlice[];
  baseSlices(): RawSlice[];
  load(state: string, param: number, begin: number, data: Uint8Array): void;
  finishLoad(at: TrainingPosition & { restore: Restore }): Promise<void>;
  computeReference(): Promise<Float64Array>;
  setReference(logProbs: Float64Array): void;
  memory(): RankMemory;
  lr(): number;
  step(flags: number): Promise<StepResult>;
  evaluate(file: number): Promise<EvalResult>;
  prepareSnapshot(): void;
  snapshot(): Promise<RawSnapshot>;
  releaseSnapshot(slot: number): void;
  digestPart(): string;
  baseDigestPart(): Promise<string>;
  close(): Promise<void>;
}

interface LikelyToken {
  token: number;
  /** Natural logarithm of its probability under the model, before temperature and other restrictions. */
  logprob: number;
}

export interface DrawnToken extends LikelyToken {
  /** Of the request. */
  id: number;
  /** The most likely one first. */
  top: LikelyToken[];
  /**
   * `end`: the token is one of end_tokens; `length`: max_tokens or the engine's maxLength is reached. Null: the text
   * goes on.
   */
  finish: 'end' | 'length' | null;
  /** Tokens of the prompt that did not have to be computed. */
  cached_tokens: number;
}

/** An adapter over the model of an engine. */
export interface AddedAdapter {
  /** Its number, from 1; not used again. */
  adapter: number;
  /** On the device. */
  num_bytes: number;
}

export interface RawAnswerEngine {
  readonly maxLength: number;
  readonly numBytes: number;
  setParam(index: number, begin: number, dtype: string, elements: Uint8Array): void;
  add(id: number, prompt: Int32Array, options: object): void;
  addAdapter(adapter: object, values: Uint8Array[]): Promise<AddedAdapter>;
  removeAdapter(adapter: number): Promise<void>;
  cancel(id: number): void;
  allow(id: number, mask: Uint32Array): void;
  step(): Promise<DrawnToken[]>;
  close(): void;
}

/**
 * The repository's root: the directory of zerofleet's package.json, whether this file runs from source or from dist/.
 */
function projectRoot(): string {
  let directory = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const manifest = join(directory, 'package.json');
    if (existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).name === 'zerofleet')
      return directory;
    const parent = dirname(directory);
    if (parent === directory) throw new NativeError('addon_missing', 'cannot find the root of zerofleet');
    directory = parent;
  }
}

let loaded: Addon | undefined;

/** Loads the addon on first use. Throws NativeError `addon_missing` with the build command when it is not built. */
export function addon(): Addon {
  loaded ??= load(join(projectRoot(), 'native', 'build', 'zerofleet.node'));
  return loaded;
}

/** Takes another build of the addon for all of this process; a test's own programs do so before anything else. */
export function useAddon(path: string): void {
  loaded = load(path);
}

function load(path: string): Addon {
  try {
    return createRequire(import.meta.url)(path) as Addon;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new NativeError(
      'addon_missing',
      `cannot load the native core; run \`npm run build\` first. ${reason}`,
    );
  }
}

/** Measurement of an operation of the training step on random values. */
export interface KernelTimes {
  /** Shape of the operands, rows first. */
  shape: string;
  /** Operations of its matrix products, a multiplication and an addition each; 0 where there are none. */
  operations: number;
  /** Bytes that it has to read and to write, each once. */
  bytes: number;
  /** It overwrites most of its input. */
  in_place: boolean;
  /** Mean magnitude of the results: not a number or infinite where one of the values is. */
  mean_magnitude: number;
  seconds: number[];
}

export interface OptimizerSeconds {
  /** Read and written by one step. */
  bytes_per_param: number;
  optimizer_seconds: number[];
  in_place_seconds: number[];
}
