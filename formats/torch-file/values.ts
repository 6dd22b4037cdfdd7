/** Values of a file of `torch.save`. A Python list is an array, a dict (of any kind) a Map. */

/** Dtypes of tensors by storage class. */
export const STORAGE_DTYPES = {
  FloatStorage: 'F32',
  HalfStorage: 'F16',
  BFloat16Storage: 'BF16',
  LongStorage: 'I64',
  IntStorage: 'I32',
  DoubleStorage: 'F64',
  BoolStorage: 'BOOL',
  ByteStorage: 'U8',
  CharStorage: 'I8',
  ShortStorage: 'I16',
} as const;

export type StorageClass = keyof typeof STORAGE_DTYPES;
export type TorchDtype = (typeof STORAGE_DTYPES)[StorageClass];

export class PyTuple {
  constructor(readonly items: readonly TorchValue[]) {}
}

/** Function or class that a pickle names; it is never looked up. */
export class Global {
  constructor(readonly name: string) {}
}

/** Storage of a tensor. */
export class Storage {
  constructor(
    readonly type: StorageClass,
    readonly key: string,
    readonly numel: number,
  ) {}
}

/** Float that may have no fraction: Python distinguishes 1.0 from 1. */
export class PyFloat {
  constructor(readonly value: number) {}
}

/** Tensor description; its elements lie in an entry of the archive. */
export class TorchTensor {
  constructor(
    readonly dtype: TorchDtype,
    readonly shape: readonly number[],
    /** Key of its storage: the entry `data/<key>`. */
    readonly storage: string,
    /** First element in the storage, and the number of elements in the storage. */
    readonly offset: number,
    readonly storageNumel: number,
    /** In elements, one for each dimension. */
    readonly strides: readonly number[],
  ) {}

  get numel(): number {
    return this.shape.reduce((product, size) => product * size, 1);
  }
}

/**
 * Pickled object that is neither tensor nor plain value. It is never instantiated: its class stays a name.
 */
export class PyRecord {
  /** Its `__dict__`; empty if the pickle sets none, or another kind of state. */
  attributes: TorchDict = new Map();

  constructor(
    readonly name: string,
    readonly args: readonly TorchValue[],
  ) {}
}

export type TorchValue =
  | null
  | boolean
  | number
  | string
  | PyFloat
  | PyTuple
  | TorchTensor
  | PyRecord
  | Global
  | Storage
  | TorchValue[]
  | TorchDict;

export type DictKey = string | number;
export type TorchDict = Map<DictKey, TorchValue>;

/** Returns a number of any Python type; null for other values. */
export function numberOf(value: TorchValue | undefined): number | null {
  if (value instanceof PyFloat) return value.value;
  return typeof value === 'number' ? value : null;
}
