/** Tensors of a model's module in transformers 5, under whose names DeepSpeed saves a checkpoint. */

interface Param {
  name: string;
  shape: readonly number[];
  numel: number;
}

/** Tensor of a module, and the parameters whose elements follow each other in it. */
export interface ModuleTensor<P extends Param = Param> extends Param {
  params: readonly P[];
}

const ROUTER = /block_sparse_moe\.gate\.weight$/;
const EXPERT = /block_sparse_moe\.experts\.\d+\.w([123])\.weight$/;

/**
 * Returns the tensors that hold the parameters, each at the place of its first one. Most hold one parameter under its
 * own name. A mixture of experts has two tensors for the E experts of a layer: (E, 2 × inner, hidden) with w1 above w3,
 * and (E, hidden, inner) with w2.
 * @param params in canonical order
 */
export function moduleTensors<P extends Param>(params: readonly P[]): ModuleTensor<P>[] {
  const tensors = new Map<string, P[]>();
  for (const param of params) {
    const name = param.name
      .replace(ROUTER, 'mlp.gate.weight')
      .replace(EXPERT, (_, matrix) => `mlp.experts.${matrix === '2' ? 'down_proj' : 'gate_up_proj'}`);
    const others = tensors.get(name);
    if (others) others.push(param);
    else tensors.set(name, [param]);
  }
  return [...tensors].map(([name, members]) => {
    const numel = members.reduce((sum, param) => sum + param.numel, 0);
    return { name, shape: shapeOf(members), numel, params: members };
  });
}

function shapeOf(params: readonly Param[]): readonly number[] {
  const [first] = params;
  const { name = '', shape: [rows = 0, columns = 0] = [] } = first ?? {};
  const [, matrix] = EXPERT.exec(name) ?? [];
  if (matrix === undefined) return first?.shape ?? [];
  return matrix === '2' ? [params.length, rows, columns] : [params.length / 2, 2 * rows, columns];
}
