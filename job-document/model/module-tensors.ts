/** Tensors of a model's module in transformers 5, under whose names DeepSpeed saves a checkpoint. */
import { PARAM_NAMES } from './families/families.js';
import type { Part } from './parts.js';

interface Param {
  name: string;
  shape: readonly number[];
  numel: number;
}

/** Tensor of a module, and the parameters whose elements follow each other in it. */
export interface ModuleTensor<P extends Param = Param> extends Param {
  params: readonly P[];
}

/** Names of the tensors that differ from the names of their parameters; `{}` stands for numbers. */
const TENSORS: ReadonlyMap<string, string> = new Map(
  PARAM_NAMES.flatMap(({ modules, tensors = {} }) =>
    Object.entries(tensors).map(([part, tensor]) => [`${modules[part as Part]}.weight`, tensor]),
  ),
);

/**
 * Returns the tensors that hold the parameters, each at the position of its first one. Most hold one parameter under
 * its own name. For the E experts of a layer there are (E, 2 × inner, hidden) with each gate above its up, and (E,
 * hidden, inner).
 * @param params in canonical order
 */
export function moduleTensors<P extends Param>(params: readonly P[]): ModuleTensor<P>[] {
  const tensors = new Map<string, P[]>();
  for (const param of params) {
    const name = tensorName(param.name);
    const others = tensors.get(name);
    if (others) others.push(param);
    else tensors.set(name, [param]);
  }
  return [...tensors].map(([name, members]) => {
    const numel = members.reduce((sum, param) => sum + param.numel, 0);
    return { name, shape: shapeOf(members), numel, params: members };
  });
}

/** Returns the name with `{}` in place of the numbers of layer and expert. */
const kindOf = (name: string) => name.replace(/(?<=\.)\d+(?=\.)/g, '{}');

function tensorName(name: string): string {
  const [, layer = ''] = /\.(\d+)\./.exec(name) ?? [];
  return TENSORS.get(kindOf(name))?.replace('{}', layer) ?? name;
}

function shapeOf(params: readonly Param[]): readonly number[] {
  const kinds = new Set(params.map(({ name }) => kindOf(name)));
  const [first] = params;
  const { name = '', shape = [] } = first ?? {};
  const ofExperts = TENSORS.has(kindOf(name)) && kindOf(name).split('{}').length > 2;
  const [rows = 0, columns = 0] = shape;
  return ofExperts ? [params.length / kinds.size, kinds.size * rows, columns] : shape;
}
