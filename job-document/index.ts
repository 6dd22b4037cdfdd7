/**
 * Domain of the job document: its rules, resolution and resource needs. Pure: no I/O, imports contracts/
 * only.
 */
export { checkCall } from './calls/call-rules.js';
export { type CallBounds, callBounds, completeCall } from './calls/complete-call.js';
export * from './early-stopping.js';
export * from './estimate/gpu-fit.js';
export type { RankBudget } from './estimate/micro-batch.js';
export * from './estimate/rank-memory.js';
export type { EstimateDevice, Machine } from './estimate/sizes.js';
export * from './estimate/work.js';
export { offloadedBytes } from './estimate/zero-memory.js';
export * from './evaluation.js';
export * from './mixture.js';
export { isNamed, moduleOf, trainedArchitecture } from './model/adapters.js';
export {
  architectureOf,
  familyOf,
  MODEL_TYPES,
  type ModelType,
  PARAM_NAMES,
  paramNamesOf,
} from './model/families/families.js';
export type { FieldFact, FieldSchema } from './model/field-facts.js';
export {
  causalLmClass,
  configSchema,
  describedFamily,
  fieldsOf,
  floatFields,
  importConfig,
} from './model/import.js';
export { leafCount, tokensPerStep } from './model/leaves.js';
export * from './model/module-tensors.js';
export * from './model/params.js';
export { isDerived, PARTS, type ParamNames, type Part, type PartParams } from './model/parts.js';
export * from './objective.js';
export * from './overrides.js';
export * from './presets.js';
export * from './reinforcement/advantages.js';
export * from './reinforcement/lr-at.js';
export * from './reinforcement/rollout-plan.js';
export { resolveAdapter } from './resolve/adapter.js';
export { samplesPerEpoch } from './resolve/data.js';
export { checkMultiple } from './resolve/expert-sets.js';
export { type InitFrom, initFromOf } from './resolve/init/given-init.js';
export type { CheckpointSource, InitSource } from './resolve/init/source.js';
export { baseOf, modelsOf } from './resolve/models-of.js';
export {
  checkWeights,
  extraStatesOf,
  momentsOf,
  OPTIMIZER_TYPES,
  type OptimizerType,
  resolveOptimizer,
} from './resolve/optimizer.js';
export { groupOf } from './resolve/param-groups.js';
export { patchSpec } from './resolve/patch.js';
export { DEFAULT_POOL } from './resolve/resources.js';
export { isTrainable, resolveSteps, type StepSources } from './resolve/steps/steps.js';
export { DEFAULT_CHAT_TEMPLATE, resolveTokenizer, tokenizerModel } from './resolve/tokenizer.js';
export * from './resolve-spec.js';
export * from './warnings.js';
