export type { StepResult } from './addon.js';
export { NativeError } from './error.js';
export { castToBf16, fingerprint, type ParamInfo, paramTable } from './info.js';
export { type GemmShape, measureGemm, measureOptimizer } from './measure.js';
export type { ModelConfig } from './model-config.js';
export { type SampleOptions, Sampler } from './sampler.js';
export {
  type Precision,
  type Slice,
  type Snapshot,
  type SnapshotSlice,
  type StateName,
  Trainer,
  type TrainerConfig,
} from './trainer.js';
