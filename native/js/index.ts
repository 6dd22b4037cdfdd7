export type { CudaDevice, EvalResult, Gpu, KernelTimes, StepResult, ZeroMemory } from './addon.js';
export { NativeError } from './error.js';
export {
  type AdapterFactors,
  addOutputSquares,
  castTo16Bit,
  cudaDevices,
  cudaProblem,
  endWithParent,
  fingerprint,
  gpus,
  initialValues,
  mergeAdapter,
  type ParamInfo,
  paramTable,
  stateNames,
  stayOnNode,
  watchGpu,
} from './info.js';
export {
  type GemmShape,
  kernelNames,
  measureBandwidth,
  measureGemm,
  measureKernel,
  measureOptimizer,
  measureZeroMemory,
} from './measure.js';
export type { ModelConfig } from './model-config.js';
export { type SampleOptions, Sampler } from './sampler.js';
export { type Slice, type Snapshot, type SnapshotSlice, Trainer } from './trainer.js';
export type { DeviceKind } from './trainer-config.js';
export {
  type LossScaleConfig,
  type LrScheduleConfig,
  type OptimizerConfig,
  type OverrideConfig,
  type ParamGroupConfig,
  type Precision,
  plainSettings,
  type StateName,
  type TrainerConfig,
  type ZeroConfig,
} from './trainer-config.js';
export type {
  LossScalerState,
  MemoryPart,
  RankMemory,
  Restore,
  TrainingPosition,
} from './training-position.js';
