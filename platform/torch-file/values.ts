/** What a file of `torch.save` may be made of. A Python list is an array, a dict (of whatever order) a Map. */

/** Dtypes of tensors, by the storage class that a file names. */
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

/** A function or class that a pickle names; it is never looked up. */
export class Global {
  constructor(readonly name: string) {}
}

/** A storage that a tensor is made of. */
export class Storage {
  constructor(
    readonly type: StorageClass,
    readonly key: string,
    readonly numel: number,
  ) {}
}

/** A float that may have no fraction: Python tells 1.0 from 1. */
export class PyFloat {
  constructor(readonly value: number) {}
}

/** A tensor's description; its elements lie in an entry of the archive. */
export class TorchTensor {
  constructor(
    readonly dtype: TorchDtype,
    readonly shape: readonly number[],
    /** Key of its storage: the entry `data/<key>`. */
    readonly storage: string,
    /** First element in the storage, and how many the storage has. */
    readonly offset: number,
    readonly storage_numel: number,
    /** In elements, one for each dimension. */
    readonly strides: readonly number[],
  ) {}

  get numel(): number {
    return this.shape.reduce((product, size) => product * size, 1);
  }
}

/** What a pickle says of an object that is neither tensor nor plain value. Nothing is made of it: its class stays a name. */
export class PyRecord {
  /** Its `__dict__`; empty where the pickle sets none, or another kind of state. */
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

/** A number, however Python had it; null for what is none. */
export function numberOf(value: TorchValue | undefined): number | null {
  if (value instanceof PyFloat) return value.value;
  return typeof value === 'number' ? value : null;
}
