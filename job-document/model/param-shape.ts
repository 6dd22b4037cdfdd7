/** Parameter of a model, with the native core's name and order. */
export interface ModelParam {
  name: string;
  shape: number[];
  numel: number;
  /** True if `weight_decay` of the optimizer applies to it; not for norms and biases. */
  decays: boolean;
  /** Number of its expert; null if all tokens share it. */
  expert: number | null;
  /** True for the base under an adapter. */
  frozen: boolean;
  /** Storage of a quantized matrix of the base; null: in the training precision. */
  quantization: 'nf4' | 'int8' | null;
}

export interface ParamShape extends Omit<ModelParam, 'expert'> {
  /** Columns of the input and the output of a matrix of a layer; a matrix of the model's ends has none. */
  linear?: { from: number; to: number; router: boolean };
}

export function matrix(name: string, rows: number, columns: number): ParamShape {
  return {
    name,
    shape: [rows, columns],
    numel: rows * columns,
    decays: true,
    frozen: false,
    quantization: null,
  };
}

export function vector(name: string, size: number): ParamShape {
  return { name, shape: [size], numel: size, decays: false, frozen: false, quantization: null };
}
