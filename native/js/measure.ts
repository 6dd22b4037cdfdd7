import type { Architecture } from '../../contracts/architecture.js';
import type { Precision } from '../../contracts/index.js';
import { addon, type KernelTimes, type OptimizerSeconds, type ZeroMemory } from './addon.js';
import { native, nativeAsync } from './error.js';
import { cpuIsa } from './info.js';
import type { OptimizerConfig } from './trainer-config.js';

interface GemmShape {
  m: number;
  n: number;
  k: number;
}

/**
 * Seconds of each step of an optimizer with fp32 master, states and gradient and bf16 parameters. Also returns the
 * seconds of an in-place update of the same number of bytes; the two take turns. `params` is a multiple of 4096.
 */
export function measureOptimizer(options: {
  optimizer: OptimizerConfig['type'];
  ema_decay: number;
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

/** The operations that measureKernel() knows. */
export function kernelNames(): string[] {
  return native(() => addon().kernelNames());
}

/**
 * Seconds of each run of one operation, in the shapes of a model's pass; a model need not have the operation itself.
 */
export function measureKernel(options: {
  op: string;
  model: Architecture;
  micro_batch_size: number;
  sequence_length: number;
  precision: Precision;
  threads: number;
  repeats: number;
}): Promise<KernelTimes> {
  return nativeAsync(() => addon().measureKernel({ ...options, cpu_isa: cpuIsa() }));
}

/**
 * Seconds of passes over memory that move `bytes`: read, or half of them read and half written by an update in place or
 * a copy.
 */
export function measureBandwidth(options: {
  bytes: number;
  pass: 'in_place' | 'copy' | 'read';
  threads: number;
  repeats: number;
}): Promise<number[]> {
  return nativeAsync(() => addon().measureBandwidth(options));
}

/**
 * Runs two steps of the whole ZeRO core on unused parameters, `world_size` ranks as threads, and returns the
 * memory that rank 0 keeps. All of it has been touched, so the process's peak resident set is the memory of
 * all ranks.
 */
export function measureZeroMemory(options: {
  params: number;
  param_numel: number;
  world_size: number;
}): Promise<ZeroMemory> {
  return nativeAsync(() => addon().measureZeroMemory(options));
}
