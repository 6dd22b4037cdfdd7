import type { Architecture } from '../../contracts/architecture.js';
import { adaptersOf, isQuantizable, moduleOf, underAdapter } from './adapters.js';
import { paramNamesOf } from './families/families.js';
import { type ModelParam, matrix, type ParamShape, vector } from './param-shape.js';
import { factOf, PARTS, type ParamNames, type PartParams, partsOf } from './parts.js';

export type { ModelParam } from './param-shape.js';

/**
 * Parameters for each layer, or for each expert of each layer; `{}` in the name stands for the number of one,
 * then of the other.
 */
export interface ParamKind extends Omit<ModelParam, 'expert'> {
  /** 1 for a parameter outside of the layers. */
  layers: number;
  /** Null if all tokens share it. */
  experts: number | null;
}

/**
 * Returns the parameters of a model by kind. A model may have 200,000 parameters of some 20 kinds, so
 * counting is done by kind.
 */
export function paramKinds(architecture: Architecture): ParamKind[] {
  const { num_hidden_layers, num_experts } = architecture;
  const { before, layer, expert, after } = paramTable(architecture);
  const base = (shapes: readonly ParamShape[]) => shapes.map((shape) => underAdapter(architecture, shape));
  const adapters = (shapes: readonly ParamShape[]) => adaptersOf(architecture, shapes);
  const kinds = (shapes: readonly ParamShape[], layers: number, experts: number | null) =>
    shapes.map(({ linear: _, ...shape }) => ({ ...shape, layers, experts }));
  return [
    ...kinds(base(before), 1, null),
    ...kinds(base(layer), num_hidden_layers, null),
    ...kinds(base(expert), num_hidden_layers, num_experts),
    ...kinds(base(after), 1, null),
    ...kinds(adapters(layer), num_hidden_layers, null),
    ...kinds(adapters(expert), num_hidden_layers, num_experts),
  ];
}

/** Returns the modules whose matrices may have adapters; `{}` stands for numbers of layers and experts. */
export function layerModules(architecture: Architecture): string[] {
  const { layer, expert } = paramTable(architecture);
  return [...layer, ...expert].filter(({ linear }) => linear !== undefined).map(({ name }) => moduleOf(name));
}

/** Returns those of them whose matrices can be quantized. */
export function quantizableModules(architecture: Architecture): string[] {
  const { layer, expert } = paramTable(architecture);
  return [...layer, ...expert].filter(isQuantizable).map(({ name }) => moduleOf(name));
}

/** Returns all modules with parameters, in the same form. */
export function modules(architecture: Architecture): string[] {
  return [...new Set(paramKinds(architecture).map(({ name }) => moduleOf(name)))];
}

/** Returns the number of parameters of a kind. */
export function countOf({ layers, experts }: ParamKind): number {
  return layers * (experts ?? 1);
}

/** Returns the number of elements of all parameters. */
export function numParams(architecture: Architecture): number {
  return paramKinds(architecture).reduce((sum, kind) => sum + countOf(kind) * kind.numel, 0);
}

/** Returns the name of one parameter of a kind. */
export function paramName({ name }: Pick<ParamKind, 'name'>, layer: number, expert: number): string {
  return name.replace('{}', String(layer)).replace('{}', String(expert));
}

/**
 * Returns all parameters of a model in canonical order, about that of the forward pass, with adapters behind all
 * others. The native core has the same table (native/model/config/param_table.h).
 */
export function modelParams(architecture: Architecture): ModelParam[] {
  const { before, layer, expert, after } = paramTable(architecture);
  const under = (shapes: readonly ParamShape[]) => shapes.map((shape) => underAdapter(architecture, shape));
  const param = (
    { linear: _, ...shape }: ParamShape,
    at = 0,
    expertIndex: number | null = null,
  ): ModelParam => ({
    ...shape,
    name: paramName(shape, at, expertIndex ?? 0),
    expert: expertIndex,
  });
  const count = (length: number) => Array.from({ length }, (_, index) => index);
  const ofLayers = (shapes: readonly ParamShape[], ofExperts: readonly ParamShape[]) =>
    count(architecture.num_hidden_layers).flatMap((at) => [
      ...shapes.map((shape) => param(shape, at)),
      ...count(architecture.num_experts).flatMap((expertIndex) =>
        ofExperts.map((shape) => param(shape, at, expertIndex)),
      ),
    ]);
  const base = [
    ...under(before).map((shape) => param(shape)),
    ...ofLayers(under(layer), under(expert)),
    ...under(after).map((shape) => param(shape)),
  ];
  return [...base, ...ofLayers(adaptersOf(architecture, layer), adaptersOf(architecture, expert))];
}

/** Returns the weight of the output projection if the input embedding is in its place; otherwise null. */
export function tiedHead(model: Architecture): string | null {
  return model.tie_word_embeddings ? `${paramNamesOf(model).modules.head}.weight` : null;
}

interface Table {
  before: ParamShape[];
  /** Parameters of each layer, before those of its experts. */
  layer: ParamShape[];
  /** Parameters of each expert of each layer. */
  expert: ParamShape[];
  after: ParamShape[];
}

function paramTable(model: Architecture): Table {
  const names = paramNamesOf(model);
  const table: Table = { before: [], layer: [], expert: [], after: [] };
  for (const [part, module] of partsOf(names, model)) {
    const shapes = shapesOf(PARTS[part], module, names, model);
    const [, perLayer, perExpert] = module.split('{}');
    if (perExpert !== undefined) table.expert.push(...shapes);
    else if (perLayer !== undefined) table.layer.push(...shapes);
    else if (table.layer.length === 0) table.before.push(...shapes);
    else table.after.push(...shapes);
  }
  return table;
}

/** Returns the weight of a part and its bias, if it has one. */
function shapesOf(part: PartParams, module: string, names: ParamNames, model: Architecture): ParamShape[] {
  const to = factOf(model, part.out);
  const bias = part.bias !== undefined && factOf(model, part.bias) ? [vector(`${module}.bias`, to)] : [];
  return [weightOf(part, `${module}.weight`, names, model), ...bias];
}

function weightOf(part: PartParams, name: string, { in_first }: ParamNames, model: Architecture): ParamShape {
  const to = factOf(model, part.out);
  if (part.in === undefined) return vector(name, to);
  const from = factOf(model, part.in);
  if (part.kind === 'embedding') return matrix(name, to, from);
  const shape = in_first ? matrix(name, from, to) : matrix(name, to, from);
  return { ...shape, linear: { from, to, router: part.kind === 'router' } };
}
