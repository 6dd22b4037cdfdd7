import type { Architecture } from '../../contracts/architecture.js';
import type { Precision } from '../../contracts/index.js';
import type { StateName } from '../../contracts/state-records.js';
import { addon, type CudaDevice, type Gpu, type HalfDtype, type RawParamInfo } from './addon.js';
import { native } from './error.js';
import type { DeviceKind, UpdateConfig } from './trainer-config.js';

export type ParamInfo = RawParamInfo;

/** Instruction-set path to use: ZEROFLEET_CPU_ISA, or the best that the machine has. */
export function cpuIsa(): string {
  return process.env.ZEROFLEET_CPU_ISA || 'auto';
}

/** Parameters in canonical order with their position in the block numbering. Throws `invalid_model_config`. */
export function paramTable(model: Architecture): ParamInfo[] {
  return native(() => addon().paramTable(model));
}

/** Returns the states that a training keeps of each trained parameter, `master` first. Throws `invalid_argument`. */
export function stateNames(config: UpdateConfig): StateName[] {
  return native(() => addon().stateNames(config));
}

/**
 * The scope of bit-exactness of a rank on this machine, e.g. `cpu-avx512bf16/2` or
 * `cuda-nvidia-h200-sm_90x132-cudart13.0-cublaslt13.1.0-cudnn9.24.0/7`. Throws `isa_unavailable`, `device_unavailable`.
 */
export function fingerprint(device: DeviceKind = 'cpu'): string {
  return native(() => addon().fingerprint(device, cpuIsa()));
}

/**
 * Returns all GPUs of this machine, regardless of CUDA_VISIBLE_DEVICES; none without a driver. Throws
 * `device_unavailable`.
 */
export function gpus(): Gpu[] {
  return native(() => addon().gpus());
}

/**
 * Listens to the driver's reports about a GPU from now on, regardless of which process uses it. The function
 * returns the XIDs since its last call; none where the driver has no such events. Throws
 * `device_unavailable`.
 */
export function watchGpu(uuid: string): () => number[] {
  return native(() => addon().watchGpu(uuid));
}

/**
 * Measures how busy a GPU is. The function returns the share of the last second or less in which some kernel ran; null
 * where the driver does not measure it.
 */
export function measureGpu(uuid: string): () => number | null {
  return native(() => addon().measureGpu(uuid));
}

/** The GPUs that CUDA shows this process; null where the addon was built without CUDA. Throws `device_unavailable`. */
export function cudaDevices(): CudaDevice[] | null {
  return native(() => addon().cudaDevices());
}

/**
 * Returns the reason for which an installed driver shows no GPU to CUDA: it is too old for the addon's runtime. Null:
 * it is not, or there is no driver.
 */
export function cudaProblem(): string | null {
  return native(() => addon().cudaProblem());
}

/** fp32 bytes → bytes of `dtype`, rounded to nearest even. Throws `weight_out_of_range` where fp16 would overflow. */
export function castTo16Bit(dtype: HalfDtype, fp32: Uint8Array): Uint8Array {
  return native(() => addon().castTo16Bit(dtype, aligned(fp32)));
}

/** An adapter's factors, fp32, and the matrix that they are over. */
export interface AdapterFactors {
  /** (rank, in). */
  down: Uint8Array;
  /** (out, rank). */
  up: Uint8Array;
  rank: number;
  in: number;
  out: number;
  scale: number;
  /** The matrix is stored as (in, out). */
  in_first: boolean;
  /** (out): factors of the outputs of W + scale · B A; null: 1. */
  output_factors: Float64Array | null;
}

/**
 * Returns the elements of W + scale · B A from `begin` on, times the factors of their outputs. They are rounded once,
 * so the bits do not depend on how the matrix is cut. Throws `invalid_argument` where sizes do not fit.
 */
export function mergeAdapter(adapter: AdapterFactors, begin: number, fp32: Uint8Array): Uint8Array {
  return native(() => addon().mergeAdapter(withAligned(adapter), begin, aligned(fp32)));
}

/** Adds the squares of these elements, without factors, to the sums of their outputs: (out). */
export function addOutputSquares(
  adapter: AdapterFactors,
  begin: number,
  fp32: Uint8Array,
  sums: Float64Array,
): void {
  native(() => addon().addOutputSquares(withAligned(adapter), begin, aligned(fp32), sums));
}

function withAligned(adapter: AdapterFactors): AdapterFactors {
  return { ...adapter, down: aligned(adapter.down), up: aligned(adapter.up) };
}

/** A matrix of the base, the format in which ranks hold it, and the precision of the training. */
export interface QuantizedShape {
  format: 'nf4' | 'int8';
  precision: Precision;
  rows: number;
  columns: number;
}

/**
 * Returns what products read of a matrix that is quantized, in fp32. `fp32` has all its elements, in the order of its
 * rows.
 */
export function quantizedValues(matrix: QuantizedShape, fp32: Uint8Array): Uint8Array {
  return native(() => addon().quantizedValues(matrix, aligned(fp32)));
}

/** Returns elements `[begin, end)` of a parameter as a training with this seed begins, in fp32. */
export function initialValues(
  model: Architecture,
  seed: number,
  param: number,
  begin: number,
  end: number,
): Uint8Array {
  return native(() => addon().initialValues(model, seed, param, begin, end));
}

/**
 * Returns the part of the state digest of a parameter's values from a block on; 32 hexadecimal digits. The last block
 * is padded with zeros.
 * @param firstBlock number of that block among all blocks of the model
 */
export function digestValues(state: StateName, firstBlock: number, fp32: Uint8Array): string {
  return native(() => addon().digestValues(state, firstBlock, aligned(fp32)));
}

function aligned(fp32: Uint8Array): Uint8Array {
  return fp32.byteOffset % 4 === 0 ? fp32 : new Uint8Array(fp32);
}

/**
 * From now on the kernel ends this process as soon as its parent is gone, also while it is stopped or busy in native
 * code. False on systems that can't.
 */
export function endWithParent(): boolean {
  return native(() => addon().endWithParent());
}

/**
 * Binds all threads of this process to the processors of one NUMA node, so that its memory is local. Does so where a
 * machine has several nodes, each node has ranks, and this rank's threads fit. Returns true if the threads are bound.
 */
export function stayOnNode(localRank: number, localRanks: number, threads: number): boolean {
  return native(() => addon().stayOnNode(localRank, localRanks, threads));
}
