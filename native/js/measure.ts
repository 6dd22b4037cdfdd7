import { addon } from './addon.js';
import { nativeAsync } from './error.js';
import { cpuIsa } from './info.js';
import type { Precision } from './trainer-config.js';

export interface GemmShape {
  m: number;
  n: number;
  k: number;
}

/** Seconds of each AdamW pass, and of an in-place update of the same number of bytes taken in turn with it. */
export function measureOptimizer(options: {
  params: number;
  threads: number;
  repeats: number;
}): Promise<{ adamw_seconds: number[]; in_place_seconds: number[] }> {
  return nativeAsync(() => addon().measureOptimizer({ ...options, cpu_isa: cpuIsa() }));
}

/** Seconds of each product C (m, n) = A (m, k) · B (k, n), with B packed beforehand as the model's layers do. */
export function measureGemm(
  options: GemmShape & { precision: Precision; threads: number; repeats: number },
): Promise<number[]> {
  return nativeAsync(() => addon().measureGemm({ ...options, cpu_isa: cpuIsa() }));
}
