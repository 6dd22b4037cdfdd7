/**
 * Resolution of a client's document to the document that is trained: all defaults filled in, all rules
 * between fields checked. Each file has the defaults and rules of one section of the document.
 */

import { metricOf, VALIDATION } from '../contracts/evaluation-metrics.js';
import type {
  Dataset,
  FieldError,
  JobSpec,
  Model,
  ResolvedJobSpec,
  ResolvedModelConfig,
} from '../contracts/index.js';
import { DEFAULT_PROJECT } from '../contracts/projects.js';
import { defaultsOf } from './common/defaults.js';
import { fieldError } from './common/field-error.js';
import { importDeepspeed } from './deepspeed/import.js';
import { fitMicroBatch, type RankBudget } from './estimate/micro-batch.js';
import { evaluationsOf } from './evaluation.js';
import { architectureOf } from './model/families/families.js';
import { takesCalls } from './objective.js';
import { presets } from './presets.js';
import { checkAdapter, resolveAdapter } from './resolve/adapter.js';
import { checkCheckpoint, resolveCheckpoint } from './resolve/checkpoint.js';
import {
  checkData,
  checkFormat,
  estimatedSamples,
  resolveData,
  type SizedData,
  samplesPerEpoch,
} from './resolve/data.js';
import { checkEarlyStopping, resolveEarlyStopping } from './resolve/evaluation/early-stopping.js';
import { checkEvaluation, resolveEvaluation } from './resolve/evaluation/evaluation.js';
import { resolveBase } from './resolve/init/base.js';
import { initFromOf } from './resolve/init/given-init.js';
import { checkInitFrom, continuedCheckpoint, resolveInitFrom } from './resolve/init/init-from.js';
import { checkGiven } from './resolve/init/init-model.js';
import type { InitSource } from './resolve/init/source.js';
import { checkMixture } from './resolve/mixture.js';
import { checkModel, resolveConfig } from './resolve/model.js';
import { checkDatasets, checkObjective, resolveObjective } from './resolve/objective.js';
import { checkOptimizer, checkWeights, resolveUpdate } from './resolve/optimizer.js';
import { checkParamGroups } from './resolve/param-groups.js';
import { checkQuantization } from './resolve/quantization.js';
import { checkRanks, resolveResources } from './resolve/resources.js';
import { checkSamples } from './resolve/samples.js';
import { resolveSources } from './resolve/sources.js';
import { checkBatch, resolveBatch } from './resolve/steps/batch.js';
import { checkLossScale, resolveLossScale } from './resolve/steps/loss-scale.js';
import { checkLrSchedule, resolveLrSchedule } from './resolve/steps/lr-schedule.js';
import { checkCalls, resolveSession, SESSION_KEEPS, SESSION_SCHEDULE } from './resolve/steps/session.js';
import { checkEpochs, resolveSteps } from './resolve/steps/steps.js';
import { checkTokenizer, checkVocabulary, type DataSources } from './resolve/tokenizer.js';
import { checkZero, resolveZero } from './resolve/zero.js';

interface ResolvedSpec {
  spec: ResolvedJobSpec;
  /** All broken rules; if empty, `spec` can be trained. */
  errors: FieldError[];
}

export interface ResolveOptions {
  /** Source of `model.init_from`; null skips the rules about it and leaves it out. */
  source?: InitSource | null;
  /** Size of the data that is not found because objects were not copied yet, together; null: unknown. */
  bytes?: number | null;
  /** Model whose tokenizer is used, if any; null skips the rules about it. */
  tokenizer?: Model | null;
  /** Datasets of `train.evaluation`, in their order; null, and a missing one, skips the rules about it. */
  evaluation?: readonly (Dataset | null)[];
  /** Memory of a rank, for a `micro_batch_size` of `auto`; null if no worker of the pool is known. */
  budget?: RankBudget | null;
  /** Date of the job's creation, as in `data.template_date`. */
  today?: string | null;
  /** Returns the schema errors of a document translated from a `deepspeed_config`; none by default. */
  validate?: (translated: JobSpec) => FieldError[];
}

/** Replaces an unreadable configuration, so that other rules can be checked. */
const STAND_IN = presets['llama-tiny'];

/**
 * Fills every default of a job document and checks the rules that hold between its fields.
 *
 * @param spec a document that the schema `JobSpec` accepts
 * @param named the dataset that it names, or those of its mixture in their order; null skips the rules about one. A
 *   session reads none
 */
export function resolveSpec(
  spec: JobSpec,
  named: Dataset | null | readonly (Dataset | null)[],
  options: ResolveOptions = {},
): ResolvedSpec {
  const isSession = spec.train?.session !== undefined;
  const datasets = isSession ? [] : [named].flat();
  if (spec.deepspeed_config === undefined || takesCalls(spec.train ?? {}))
    return resolveTranslated(spec, datasets, options);
  const { spec: translated, errors, origin } = importDeepspeed(spec);
  if (translated.train?.steps === undefined && translated.train?.epochs === undefined)
    errors.push(
      fieldError('/train/steps', 'missing_field', 'neither train nor the scheduler says the number of steps'),
    );
  const invalid = options.validate?.(translated) ?? [];
  const { spec: resolved, errors: broken } = resolveTranslated(translated, datasets, options);
  // A bad or missing number would cause misleading errors of related fields.
  const found = errors.length + invalid.length > 0 ? [...errors, ...invalid] : broken;
  return {
    spec: resolved,
    errors: found.map((error) => ({ ...error, pointer: origin(error.pointer) })),
  };
}

function resolveTranslated(
  spec: JobSpec,
  datasets: readonly (Dataset | null)[],
  {
    source = null,
    bytes = null,
    tokenizer = null,
    evaluation = [],
    budget = null,
    today = null,
  }: ResolveOptions,
): ResolvedSpec {
  const sources = { datasets, evaluation, source, tokenizer, today };
  const model = resolveConfig(spec.model, source);
  const filled = fillDefaults(spec, model.config ?? STAND_IN, { ...sources, bytes });
  const { spec: resolved, errors: brokenByLength } = resolveSteps(filled, {
    samples: samplesPerEpoch(datasets, filled.data, filled.train),
    continues: continuedCheckpoint(initFromOf(spec.model), source),
  });
  const { train } = spec;
  const errors = [
    ...checkGiven(spec.model),
    ...model.errors,
    // Rules about the model are skipped for an unreadable configuration.
    ...(model.config === null ? [] : checkAgainstModel(resolved, sources)),
    ...checkEpochs(train ?? {}),
    ...brokenByLength,
    ...checkBatch(resolved),
    ...checkOptimizer(train?.optimizer, resolved.train.optimizer),
    ...checkObjective(spec, resolved),
    ...checkDatasets(resolved, sources),
    ...checkLrSchedule(train?.lr_schedule, resolved.train),
    ...checkLossScale(train?.loss_scale, resolved),
    ...checkEvaluation(train?.evaluation, resolved, sources),
    ...checkEarlyStopping(resolved),
    ...checkWeights(resolved.train, resolved.export.weights, '/export/weights'),
    ...checkZero(spec.zero, resolved),
    ...checkRanks(resolved),
    ...checkCheckpoint(spec.checkpoint, resolved),
    ...checkSamples(resolved, sources),
    ...checkFormat('/data', spec.data),
    ...checkTokenizer(spec.data, resolved.data, sources),
    ...checkMixture(spec.data, datasets),
    ...checkCalls(spec, resolved),
    ...datasets.flatMap((dataset) => (dataset === null ? [] : checkData(resolved, dataset))),
  ];
  const isToFit = train?.micro_batch_size === 'auto' && errors.length === 0;
  return { spec: isToFit ? fitMicroBatch(resolved, budget) : resolved, errors };
}

function checkAgainstModel(resolved: ResolvedJobSpec, sources: DataSources): FieldError[] {
  return [
    ...checkModel(resolved),
    ...checkAdapter(resolved),
    ...checkQuantization(resolved),
    ...checkVocabulary(resolved, sources),
    ...checkInitFrom(resolved, sources.source),
    ...checkParamGroups(resolved),
  ];
}

function fillDefaults(
  spec: Omit<JobSpec, 'model'> & { model: Pick<JobSpec['model'], 'preset' | 'init_from' | 'quantization'> },
  config: ResolvedModelConfig,
  sources: DataSources & SizedData,
): ResolvedJobSpec {
  const {
    early_stopping,
    evaluation: given,
    adapter,
    objective,
    session,
    ...train
  } = { ...defaultsOf('TrainSpec'), ...spec.train };
  const resources = resolveResources(spec.resources, spec.zero?.expert_parallel_size);
  const adapted = resolveAdapter(adapter, config, sources.source);
  const { sequence_length, seed, precision } = train;
  const aim = resolveObjective(objective, { ...adapted, sequence_length });
  const data = resolveData(spec.data, sources, aim);
  const samples = estimatedSamples(sources, data, { sequence_length, ...aim });
  const evaluation = resolveEvaluation(given, data);
  const [first = VALIDATION] = evaluationsOf({ data, train: evaluation });
  const metric = metricOf(first, aim);
  const model = {
    config,
    preset: spec.model.preset ?? null,
    ...(spec.model.quantization && { quantization: spec.model.quantization }),
    init_from: resolveInitFrom(initFromOf(spec.model), sources.source),
    ...resolveBase({ train: { seed, ...adapted } }, sources.source),
  };
  return {
    name: spec.name ?? '',
    project: spec.project ?? DEFAULT_PROJECT,
    labels: spec.labels ?? {},
    notes: spec.notes ?? '',
    priority: spec.priority ?? defaultsOf('JobSpec').priority,
    model,
    data,
    train: {
      ...resolveUpdate(train),
      ...resolveBatch(spec.train, samples),
      lr_schedule: session ? SESSION_SCHEDULE : resolveLrSchedule(train.lr_schedule),
      loss_scale: resolveLossScale(train.loss_scale, precision),
      ...evaluation,
      ...resolveEarlyStopping(early_stopping, metric),
      ...adapted,
      ...aim,
      ...resolveSession(session),
    },
    zero: resolveZero(spec.zero, { model: architectureOf(config), precision, maxRanks: resources.ranks.max }),
    resources,
    checkpoint: resolveCheckpoint(
      spec.checkpoint,
      early_stopping?.metric ?? metric,
      session && SESSION_KEEPS,
    ),
    limits: { ...defaultsOf('LimitsSpec'), ...spec.limits },
    retry: { ...defaultsOf('RetrySpec'), ...spec.retry },
    export: {
      ...defaultsOf('ExportSpec'),
      checkpoint: early_stopping === undefined ? 'last' : 'best',
      ...spec.export,
    },
    notify: { ...defaultsOf('NotifySpec'), ...spec.notify },
    integrations: spec.integrations ?? defaultsOf('JobSpec').integrations,
    ...resolveSources(sources),
  };
}
