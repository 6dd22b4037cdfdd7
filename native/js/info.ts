import { addon, type HalfDtype, type RawParamInfo } from './addon.js';
import { native } from './error.js';
import type { ModelConfig } from './model-config.js';
import type { OptimizerConfig, StateName } from './trainer-config.js';

export type ParamInfo = RawParamInfo;

/** Instruction-set path to use: ZEROFLEET_CPU_ISA, or the best that the machine has. */
export function cpuIsa(): string {
  return process.env.ZEROFLEET_CPU_ISA || 'auto';
}

/** Parameters in canonical order with their place in the block numbering. Throws `invalid_model_config`. */
export function paramTable(model: ModelConfig): ParamInfo[] {
  return native(() => addon().paramTable(model));
}

/** What an optimizer keeps of each parameter that is trained, `master` first. Throws `invalid_argument`. */
export function stateNames(optimizer: OptimizerConfig): StateName[] {
  return native(() => addon().stateNames(optimizer));
}

/** The scope of bit-exactness on this machine, e.g. `cpu-avx512bf16/2`. Throws `isa_unavailable`. */
export function fingerprint(): string {
  return native(() => addon().fingerprint(cpuIsa()));
}

/** fp32 bytes → bytes of `dtype`, rounded to nearest even. Throws `weight_out_of_range` where fp16 would overflow. */
export function castTo16Bit(dtype: HalfDtype, fp32: Uint8Array): Uint8Array {
  const aligned = fp32.byteOffset % 4 === 0 ? fp32 : new Uint8Array(fp32);
  return native(() => addon().castTo16Bit(dtype, aligned));
}

/**
 * From now on the kernel ends this process as soon as its parent is gone, also while it is stopped or busy in native code.
 * False on systems that can't.
 */
export function endWithParent(): boolean {
  return native(() => addon().endWithParent());
}
