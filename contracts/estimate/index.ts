/** What a job needs of a machine's memory, and whether it fits, computed from its document alone. */
export * from './gpu-fit.js';
export * from './rank-memory.js';
export type { EstimateDevice, Machine } from './sizes.js';
export * from './work.js';
export { offloadedBytes } from './zero-memory.js';
