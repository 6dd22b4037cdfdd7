import type { Warning } from '../../contracts/index.js';
import { ignoredField } from '../common/warning.js';
import { isObject } from './key.js';
import { OPTIMIZERS, type OptimizerImport, REFUSED_OPTIMIZERS } from './optimizer-keys.js';
import { REFUSED_SCHEDULERS, SCHEDULERS, type SchedulerImport } from './scheduler-keys.js';
import { keyError, type Setting, Source, type Translated, unknownName } from './settings.js';
import { pointerTo, walk } from './walk.js';

const NOTHING: Translated = { settings: [], errors: [] };

/** Translates the optimizer together with the scheduler, which overrides its rate. */
export function translateOptimizer(source: Source, config: Record<string, unknown>): Translated {
  const optimizer = readOptimizer(source, config);
  const scheduler = readScheduler(source, config);
  // DeepSpeed's scheduler sets the rate at each step, so its rate overrides that of the optimizer.
  const scheduled = scheduler.settings.find(isRate);
  const kept = optimizer.settings.filter((setting) => scheduled === undefined || !isRate(setting));
  return {
    settings: [...kept, ...scheduler.settings],
    errors: [...optimizer.errors, ...scheduler.errors],
    warnings: [
      ...(optimizer.warnings ?? []),
      ...(scheduler.warnings ?? []),
      ...overruled(optimizer.settings.find(isRate), scheduled),
    ],
  };
}

/** Returns a warning for an explicit rate that the scheduler overrides. */
function overruled(said: Setting | undefined, scheduled: Setting | undefined): Warning[] {
  if (said?.from === undefined || scheduled === undefined || said.value === scheduled.value) return [];
  const why =
    scheduled.from === undefined
      ? `DeepSpeed's scheduler sets the rate, and warmup_max_lr is ${scheduled.value} by default: set warmup_max_lr`
      : `the scheduler sets the rate: warmup_max_lr is ${scheduled.value}`;
  return [ignoredField(pointerTo(said.from), 'lr', why)];
}

const RATE = '/train/optimizer/lr';
const isRate = ({ field }: Setting) => field === RATE;

function readOptimizer(source: Source, config: Record<string, unknown>): Translated {
  if (!isObject(config.optimizer)) return NOTHING;
  const name = source.get<string>('optimizer.type');
  if (name === undefined) return missingType('optimizer');
  const lower = name.toLowerCase();
  const refusal = Object.hasOwn(REFUSED_OPTIMIZERS, lower) ? REFUSED_OPTIMIZERS[lower] : undefined;
  if (refusal !== undefined) return unsupportedType('optimizer', name, refusal);
  const known = Object.hasOwn(OPTIMIZERS, lower) ? OPTIMIZERS[lower] : undefined;
  if (known === undefined)
    return {
      settings: [],
      errors: [unknownName('optimizer.type', name, ['Adam', 'AdamW', 'Lamb', 'Lion', 'Adagrad', 'SGD'])],
    };
  return readOptimizerParams(source, config.optimizer.params ?? {}, known, lower);
}

function readOptimizerParams(
  source: Source,
  params: unknown,
  { type, params: keys, defaults, convert }: OptimizerImport,
  name: string,
): Translated {
  const at = 'optimizer.params';
  const { readings, errors, warnings } = walk(params, keys, at);
  const inner = new Source(readings, source.own, source.ranks);
  // Only the type Adam can disable the decoupled decay; AdamW is always decoupled.
  const isPlainAdam = name === 'adam' && inner.get(`${at}.adam_w_mode`) === false;
  const settings: Setting[] = [
    { field: '/train/optimizer/type', value: isPlainAdam ? 'adam' : type, from: 'optimizer.type' },
  ];
  for (const [field, value] of Object.entries(defaults)) {
    const from = `${at}.${field}`;
    if (inner.isAuto(from)) continue;
    const said = inner.get(from);
    settings.push({
      field: `/train/optimizer/${field}`,
      value: said === undefined ? value : (convert?.[field]?.(said) ?? said),
      ...(said !== undefined && { from }),
    });
  }
  return { settings, errors, warnings };
}

function readScheduler(source: Source, config: Record<string, unknown>): Translated {
  // Without a scheduler DeepSpeed never changes the rate.
  if (!isObject(config.scheduler))
    return { settings: [{ field: '/train/lr_schedule/type', value: 'constant' }], errors: [] };
  const name = source.get<string>('scheduler.type');
  if (name === undefined) return missingType('scheduler');
  const refusal = Object.hasOwn(REFUSED_SCHEDULERS, name) ? REFUSED_SCHEDULERS[name] : undefined;
  if (refusal !== undefined) return unsupportedType('scheduler', name, refusal);
  const known = Object.hasOwn(SCHEDULERS, name) ? SCHEDULERS[name] : undefined;
  if (known === undefined)
    return { settings: [], errors: [unknownName('scheduler.type', name, Object.keys(SCHEDULERS))] };
  return readSchedulerParams(source, config, known);
}

function readSchedulerParams(
  source: Source,
  config: Record<string, unknown>,
  { type, params: keys, defaults }: SchedulerImport,
): Translated {
  const at = 'scheduler.params';
  const given = isObject(config.scheduler) ? (config.scheduler.params ?? {}) : {};
  const { readings, errors, warnings } = walk(given, keys, at);
  const inner = new Source(readings, source.own, source.ranks);
  /**
   * Returns the setting of a parameter with its origin, or DeepSpeed's default; none if it is left to the
   * document.
   */
  const setting = (name: string, field: string, convert: (value: never) => unknown = (v) => v): Setting[] => {
    const from = `${at}.${name}`;
    const said = inner.get(from);
    const value = said ?? defaults[name];
    if (inner.isAuto(from) || value === undefined) return [];
    return [{ field, value: convert(value as never), ...(said !== undefined && { from }) }];
  };
  const lr = peakRate(source, config);
  const settings = [
    { field: '/train/lr_schedule/type', value: type, from: 'scheduler.type' },
    ...setting('total_num_steps', '/train/steps'),
    ...setting('warmup_max_lr', RATE),
    ...setting('warmup_min_lr', '/train/lr_schedule/warmup_start_lr'),
    ...setting('warmup_min_ratio', '/train/lr_schedule/warmup_start_lr', (ratio: number) => ratio * lr),
    ...setting('cos_min_ratio', '/train/lr_schedule/min_lr', (ratio: number) => ratio * lr),
    // DeepSpeed treats 1 as 2; 0, which it refuses, is how users disable the warm-up.
    ...setting('warmup_num_steps', '/train/lr_schedule/warmup_steps', (steps: number) =>
      steps === 0 ? 0 : Math.max(2, steps),
    ),
    ...setting('warmup_type', '/train/lr_schedule/warmup_type'),
  ];
  return { settings, errors, warnings };
}

/** Returns the optimizer's rate, to which the ratios of a scheduler refer. */
function peakRate(source: Source, config: Record<string, unknown>): number {
  const { settings } = readOptimizer(source, config);
  const said = settings.find(isRate);
  const own = source.own.train?.optimizer?.lr;
  if (said === undefined || (said.from === undefined && own !== undefined)) return own ?? 1e-3;
  return said.value as number;
}

function missingType(section: string): Translated {
  const error = keyError(`${section}.type`, 'missing_field', `${section} needs a type`);
  return { settings: [], errors: [error] };
}

function unsupportedType(section: string, name: string, why: string): Translated {
  const error = keyError(`${section}.type`, 'deepspeed_key_unsupported', `${name}: ${why}`);
  return { settings: [], errors: [error] };
}
