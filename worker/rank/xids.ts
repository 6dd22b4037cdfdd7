/**
 * XIDs, the driver's numbers of GPU errors. Of NVIDIA's catalogue of about 170, these determine the cause of a rank's
 * failure.
 */
import type { RankError } from '../../contracts/rank-protocol.js';
import { isDeviceCode } from '../shared/gpu-faults.js';

/** Error codes of an unhealthy GPU: see gpus/gpu-faults.ts. */
type GpuFault = 'gpu_memory_fault' | 'gpu_lost';

interface Xid {
  text: string;
  /** Cause of an accompanying error; null: not the GPU. */
  fault: GpuFault | null;
}

const XIDS: ReadonlyMap<number, Xid> = new Map([
  [13, { text: 'exception of the compute engine, caused by a program', fault: null }],
  [31, { text: 'GPU memory page fault, caused by a program', fault: null }],
  [43, { text: 'a program was stopped after its own error', fault: null }],
  [45, { text: 'work was removed after another error or the end of its program', fault: null }],
  [48, { text: 'uncorrectable double-bit ECC error', fault: 'gpu_memory_fault' }],
  [63, { text: 'ECC page retirement or row remapping recorded', fault: 'gpu_memory_fault' }],
  [64, { text: 'ECC page retirement or row remapping failed', fault: 'gpu_memory_fault' }],
  [74, { text: 'NVLink error', fault: 'gpu_lost' }],
  [79, { text: 'the GPU has fallen off the bus', fault: 'gpu_lost' }],
  [94, { text: 'contained memory error', fault: 'gpu_memory_fault' }],
  [95, { text: 'uncontained memory error', fault: 'gpu_memory_fault' }],
  [119, { text: 'timeout of the GPU system processor (GSP)', fault: 'gpu_lost' }],
  [120, { text: 'error of the GPU system processor (GSP)', fault: 'gpu_lost' }],
]);

/** XIDs after which the GPU never answers: a call that waits for it may wait forever. */
const SILENT: ReadonlySet<number> = new Set([79, 119, 120]);

export function isSilent(xid: number): boolean {
  return SILENT.has(xid);
}

/** Returns `Xid 79: the GPU has fallen off the bus`, or the number alone if it is unknown. */
export function xidText(xid: number): string {
  const known = XIDS.get(xid);
  return known ? `Xid ${xid}: ${known.text}` : `Xid ${xid}`;
}

/**
 * Adds the driver's XIDs to a rank's error. If they show a fault of the GPU, its code replaces that of the error.
 * Errors unrelated to a GPU are unchanged.
 */
export function withXids(error: RankError, xids: readonly number[]): RankError {
  const distinct = [...new Set(xids)];
  if (distinct.length === 0 || !mayComeFromGpu(error.code)) return error;
  const fault = distinct.map((xid) => XIDS.get(xid)?.fault).find((found) => found);
  return { code: fault ?? error.code, message: `${error.message}; ${distinct.map(xidText).join('; ')}` };
}

function mayComeFromGpu(code: string): boolean {
  return isDeviceCode(code) || code === 'comm_timeout' || code === 'comm_failed';
}
