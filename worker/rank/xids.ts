/**
 * What the driver reports of a GPU has a number, its XID. NVIDIA's catalogue has about 170 of them; these are the ones that
 * say who is to blame when a rank fails.
 */
import type { RankError } from '../../contracts/rank-protocol.js';
import { isDeviceCode } from '../gpus/gpu-faults.js';

/** Error codes that take a GPU out: see supervisor/gpu-faults.ts. */
type GpuFault = 'gpu_memory_fault' | 'gpu_lost';

interface Xid {
  text: string;
  /** What an error that came with it was in truth; null: the GPU is not to blame. */
  fault: GpuFault | null;
}

const XIDS: ReadonlyMap<number, Xid> = new Map([
  [13, { text: 'a program made the compute engine raise an exception', fault: null }],
  [31, { text: 'a program used an address that it has no memory at', fault: null }],
  [43, { text: "a program's work was stopped for an error of its own", fault: null }],
  [45, { text: 'work was taken away after another error, or with its program', fault: null }],
  [48, { text: 'an error of two bits in its memory, which ECC can not correct', fault: 'gpu_memory_fault' }],
  [63, { text: 'a part of its memory is to be replaced by spare memory', fault: 'gpu_memory_fault' }],
  [64, { text: 'a part of its memory could not be replaced by spare memory', fault: 'gpu_memory_fault' }],
  [74, { text: 'NVLink failed', fault: 'gpu_lost' }],
  [79, { text: 'the GPU has fallen off the bus', fault: 'gpu_lost' }],
  [94, { text: 'a memory error that hit this program only', fault: 'gpu_memory_fault' }],
  [95, { text: 'a memory error that may have hit any program', fault: 'gpu_memory_fault' }],
  [119, { text: "the GPU's own processor (GSP) does not answer", fault: 'gpu_lost' }],
  [120, { text: "the GPU's own processor (GSP) failed", fault: 'gpu_lost' }],
]);

/** After these nothing comes from the GPU any more: a call that waits for it may wait for ever. */
const SILENT: ReadonlySet<number> = new Set([79, 119, 120]);

export function isSilent(xid: number): boolean {
  return SILENT.has(xid);
}

/** `Xid 79: the GPU has fallen off the bus`; the number alone where no more is known. */
export function xidText(xid: number): string {
  const known = XIDS.get(xid);
  return known ? `Xid ${xid}: ${known.text}` : `Xid ${xid}`;
}

/**
 * The error of a rank with what the driver reported of its GPU. Where that blames the GPU, the error's code says so, whatever the
 * call noticed of it. An error that no GPU has a part in stays as it is.
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
