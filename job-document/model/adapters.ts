/** Parameters of adapters; the native core has them in native/model/config/param_table.cc. */

import type { AdapterParams, Architecture } from '../../contracts/architecture.js';
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { architectureOf } from './families/families.js';
import { matrix, type ParamShape, vector } from './param-shape.js';

/** Returns the architecture that a job trains: that of its model, with the adapters over it. */
export function trainedArchitecture({
  model,
  train,
}: {
  model: Pick<ResolvedJobSpec['model'], 'config' | 'quantization'>;
  train: Pick<ResolvedJobSpec['train'], 'adapter'>;
}): Architecture {
  return {
    ...architectureOf(model.config),
    adapter: adapterParams(train.adapter),
    quantization: model.quantization ?? null,
  };
}

/** Rank-stabilized adapters (Kalajdzievski 2023) are divided by the root of the rank. */
function adapterParams(adapter: ResolvedJobSpec['train']['adapter']): AdapterParams | null {
  if (adapter === undefined) return null;
  const { alpha, rank_stabilized, ...params } = adapter;
  return { ...params, scale: alpha / (rank_stabilized ? Math.sqrt(params.rank) : params.rank) };
}

/** Returns the module of a parameter. */
export function moduleOf(param: string): string {
  return param.slice(0, param.lastIndexOf('.'));
}

/** Returns whether a module has this name, or one that ends with it, behind a dot. */
export function isNamed(module: string, name: string): boolean {
  return module === name || module.endsWith(`.${name}`);
}

/** Returns whether a parameter of the model is frozen because an adapter is trained over it. */
function isFrozenBase({ adapter }: Architecture, param: string): boolean {
  return adapter !== null && !adapter.modules_to_save.some((name) => isNamed(moduleOf(param), name));
}

/**
 * Returns a parameter of the model as it is under an adapter. The rounding of a router would change which experts a
 * token has, so it is never quantized.
 */
export function underAdapter(architecture: Architecture, shape: ParamShape): ParamShape {
  const frozen = isFrozenBase(architecture, shape.name);
  return {
    ...shape,
    frozen,
    quantization: frozen && isQuantizable(shape) ? architecture.quantization : null,
  };
}

export function isQuantizable({ linear }: ParamShape): boolean {
  return linear !== undefined && !linear.router;
}

/**
 * Returns the adapters of matrices of a layer or an expert: `lora_A` (rank, in), `lora_B` (out, rank) and with DoRA
 * `lora_magnitude_vector` (out) of each.
 */
export function adaptersOf({ adapter }: Architecture, shapes: readonly ParamShape[]): ParamShape[] {
  if (adapter === null) return [];
  const { type, rank, target_modules } = adapter;
  return shapes.flatMap(({ name, linear }) => {
    const module = moduleOf(name);
    if (linear === undefined || !target_modules.some((target) => isNamed(module, target))) return [];
    return [
      matrix(`${module}.lora_A.weight`, rank, linear.from),
      matrix(`${module}.lora_B.weight`, linear.to, rank),
      ...(type === 'dora' ? [vector(`${module}.lora_magnitude_vector.weight`, linear.to)] : []),
    ];
  });
}
