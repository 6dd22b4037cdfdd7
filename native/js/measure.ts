import { addon, type ZeroMemory } from './addon.js';
import { nativeAsync } from './error.js';
import { cpuIsa } from './info.js';
import type { OptimizerConfig, Precision } from './trainer-config.js';

export interface GemmShape {
  m: number;
  n: number;
  k: number;
}

export interface OptimizerSeconds {
  /** Read and written by one step. */
  bytes_per_param: number;
  optimizer_seconds: number[];
  in_place_seconds: number[];
}

/**
 * Seconds of each step of an optimizer with fp32 master, states and gradient and bf16 parameters, and of an in-place
 * update of the same number of bytes taken in turn with it. `params` is a multiple of 4096.
 */
export function measureOptimizer(options: {
  optimizer: OptimizerConfig['type'];
  params: number;
  threads: number;
  repeats: number;
}): Promise<OptimizerSeconds> {
  return nativeAsync(() => addon().measureOptimizer({ ...options, cpu_isa: cpuIsa() }));
}

/** Seconds of each product C (m, n) = A (m, k) · B (k, n), with B packed beforehand as the model's layers do. */
export function measureGemm(
  options: GemmShape & { precision: Precision; threads: number; repeats: number },
): Promise<number[]> {
  return nativeAsync(() => addon().measureGemm({ ...options, cpu_isa: cpuIsa() }));
}

/**
 * Two steps of the whole ZeRO core on parameters that nobody trains, `world_size` ranks as threads; what rank 0 keeps.
 * All of it has been touched, so the process's peak resident set tells what all ranks took.
 */
export function measureZeroMemory(options: {
  params: number;
  param_numel: number;
  world_size: number;
}): Promise<ZeroMemory> {
  return nativeAsync(() => addon().measureZeroMemory(options));
}
