export type {
  CudaDevice,
  DrawnToken,
  Gpu,
  KernelTimes,
  ZeroMemory,
} from './addon.js';
export { AnswerEngine, type AnswerEngineOptions, GREEDY, type SequenceOptions } from './answer-engine.js';
export { drawAnswer } from './draw-answer.js';
export { NativeError } from './error.js';
export {
  type AdapterFactors,
  addOutputSquares,
  castTo16Bit,
  cudaDevices,
  cudaProblem,
  digestValues,
  endWithParent,
  fingerprint,
  gpus,
  initialValues,
  measureGpu,
  mergeAdapter,
  type ParamInfo,
  paramTable,
  type QuantizedShape,
  quantizedValues,
  stateNames,
  stayOnNode,
  watchGpu,
} from './info.js';
export {
  kernelNames,
  measureBandwidth,
  measureGemm,
  measureKernel,
  measureOptimizer,
  measureZeroMemory,
} from './measure.js';
export type {
  OptimStep,
  PassLoss,
  PassResult,
  PassRows,
  SampledAnswer,
  SampleRequest,
} from './passes.js';
export type { MemoryPart } from './rank-memory.js';
export type { StepResult } from './step-result.js';
export { type Slice, type Snapshot, type SnapshotSlice, Trainer } from './trainer.js';
export {
  type DeviceKind,
  type OptimizerConfig,
  plainSettings,
  type TrainerConfig,
} from './trainer-config.js';
