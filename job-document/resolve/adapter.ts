import type { FieldError, JobSpec, ResolvedJobSpec, ResolvedModelConfig } from '../../contracts/index.js';
import { nearestName } from '../../contracts/nearest-name.js';
import { defaultsOf } from '../common/defaults.js';
import { fieldError } from '../common/field-error.js';
import { isNamed } from '../model/adapters.js';
import { architectureOf } from '../model/families/families.js';
import { layerModules, modules } from '../model/params.js';
import { adapterIn, type InitSource } from './init/source.js';

type Adapter = NonNullable<JobSpec['train']>['adapter'];

const AT = '/train/adapter';

/** @param source the initial state: a job that begins with an adapter trains it on, unless it says otherwise */
export function resolveAdapter(
  given: Adapter,
  config: ResolvedModelConfig,
  source: InitSource | null = null,
): Pick<ResolvedJobSpec['train'], 'adapter'> {
  if (given === undefined) {
    const adapter = source === null ? undefined : adapterIn(source);
    return adapter === undefined ? {} : { adapter };
  }
  const filled = { ...defaultsOf('AdapterSpec'), ...given };
  const { rank, target_modules } = filled;
  return {
    adapter: {
      alpha: 2 * rank,
      ...filled,
      target_modules:
        typeof target_modules === 'string' ? lastParts(layerModules(architectureOf(config))) : target_modules,
    },
  };
}

export function checkAdapter({ model, train: { adapter }, export: exported }: ResolvedJobSpec): FieldError[] {
  if (adapter === undefined) {
    if (exported.format !== 'peft') return [];
    const message = 'export.format peft needs train.adapter; set it, or write safetensors';
    return [fieldError('/export/format', 'adapter_missing', message, 'safetensors')];
  }
  const architecture = architectureOf(model.config);
  const { type, target_modules, modules_to_save, dropout } = adapter;
  const errors = [
    ...checkModules('target_modules', target_modules, layerModules(architecture)),
    ...checkModules('modules_to_save', modules_to_save, modules(architecture)),
  ];
  const targeted = layerModules(architecture).filter((module) => isAmong(module, target_modules));
  const twice = targeted.find((module) => isAmong(module, modules_to_save));
  if (twice !== undefined) {
    const message = `${twice} has an adapter and is in modules_to_save; name it in one of the two`;
    errors.push(fieldError(`${AT}/modules_to_save`, 'adapter_module_twice', message));
  }
  if (dropout > 0 && targeted.some((module) => module.includes('.experts.'))) {
    const message =
      'rows of several micro-batches pass through an expert together, so its adapter has no dropout: set 0, or target other modules';
    errors.push(fieldError(`${AT}/dropout`, 'adapter_dropout_over_experts', message, '0'));
  }
  if (dropout > 0 && type === 'dora') {
    const message =
      'a norm is of the whole matrix, so dropout would need a second product with it: set 0, or type lora';
    errors.push(fieldError(`${AT}/dropout`, 'adapter_dropout_with_dora', message, '0'));
  }
  return errors;
}

export function isAmong(module: string, names: readonly string[]): boolean {
  return names.some((name) => isNamed(module, name));
}

function checkModules(field: string, names: readonly string[], known: readonly string[]): FieldError[] {
  const parts = lastParts(known);
  return names.flatMap((name, index) =>
    known.some((module) => isNamed(module, name))
      ? []
      : [
          fieldError(
            `${AT}/${field}/${index}`,
            'adapter_module_unknown',
            `${name} is no module of the model; it has ${parts.join(', ')}`,
            nearestName(name, parts),
          ),
        ],
  );
}

/** Returns the last parts of modules' names, each once. */
function lastParts(names: readonly string[]): string[] {
  return [...new Set(names.map((name) => name.slice(name.lastIndexOf('.') + 1)))];
}
