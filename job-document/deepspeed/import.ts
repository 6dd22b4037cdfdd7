/**
 * Translation of a DeepSpeed configuration to the fields of `train` and `zero`. The tables (`*-keys.ts`) define the
 * meaning of each key, and `walk` checks a configuration against them. Each part of the translation converts values to
 * settings of fields, which `merge` writes into the document. An unsupported key or value is an error that names the
 * key, so an accepted job trains as the configuration says.
 *
 * Source of the format: docs/_pages/config-json.md and deepspeed/runtime/config.py, zero/config.py,
 * precision_config.py and lr_schedules.py of DeepSpeed.
 */
import type { FieldError, JobSpec, Warning } from '../../contracts/index.js';
import { initFromOf } from '../resolve/init/given-init.js';
import { resolveResources } from '../resolve/resources.js';
import { translateBatch } from './batch.js';
import { CONFIG_KEYS } from './config-keys.js';
import { merge } from './merge.js';
import { translateOptimizer } from './optimizer.js';
import { translatePrecision } from './precision.js';
import { Source } from './settings.js';
import { walk } from './walk.js';
import { translateZero } from './zero.js';

interface Imported {
  /** The document without `deepspeed_config`, whose values are in its own fields. */
  spec: JobSpec;
  errors: FieldError[];
  warnings: Warning[];
  /**
   * Maps the pointer of a field to the pointer of the key that it came from; other pointers are unchanged.
   */
  origin(pointer: string): string;
}

/** @param spec a document with or without `deepspeed_config` */
export function importDeepspeed(spec: JobSpec): Imported {
  const { deepspeed_config, ...given } = spec;
  if (deepspeed_config === undefined) return { spec, errors: [], warnings: [], origin: (pointer) => pointer };
  const own = withInitObject(given);
  const config = withStage(deepspeed_config);
  const { readings, errors, warnings } = walk(config, CONFIG_KEYS);
  const source = new Source(readings, own, ranksOf(own));
  const parts = [
    translateBatch(source),
    translatePrecision(source),
    translateOptimizer(source, config),
    translateZero(source),
  ];
  const merged = merge(
    own,
    parts.flatMap(({ settings }) => settings),
  );
  return {
    ...merged,
    warnings: [...warnings, ...parts.flatMap((part) => part.warnings ?? [])],
    errors: [...errors, ...parts.flatMap((part) => part.errors), ...merged.errors],
  };
}

function ranksOf({ resources, zero }: JobSpec): number {
  return resolveResources(resources, zero?.expert_parallel_size).ranks.preferred;
}

/** Converts `init_from` to an object, because a key may set its `restore`. */
function withInitObject(own: JobSpec): JobSpec {
  const initFrom = initFromOf(own.model);
  return initFrom === undefined ? own : { ...own, model: { ...own.model, init_from: initFrom } };
}

/** Converts the oldest form of the section, a boolean: true is stage 1. */
function withStage(config: Record<string, unknown>): Record<string, unknown> {
  const zero = config.zero_optimization;
  return typeof zero === 'boolean' ? { ...config, zero_optimization: { stage: zero ? 1 : 0 } } : config;
}
