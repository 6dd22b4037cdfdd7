/** The only globals that a pickle may name, and what calling each of them makes. None of them is ever run. */
import {
  Global,
  OpaqueObject,
  PyTuple,
  STORAGE_DTYPES,
  Storage,
  type StorageClass,
  TorchTensor,
  type TorchValue,
} from './values.js';

/** Refuses; the message goes on after "its pickle". */
export type Refuse = (problem: string) => Error;

const REBUILD_TENSOR = 'torch._utils._rebuild_tensor_v2';
const REBUILD_PARAMETER = 'torch._utils._rebuild_parameter';
const ORDERED_DICT = 'collections.OrderedDict';
const SIZE = 'torch.Size';

/** Objects beside the tensors of DeepSpeed's files. */
const OPAQUE: readonly string[] = [
  'deepspeed.runtime.fp16.loss_scaler.LossScaler',
  'deepspeed.runtime.fp16.loss_scaler.DynamicLossScaler',
];

const ALLOWED: ReadonlySet<string> = new Set([
  REBUILD_TENSOR,
  REBUILD_PARAMETER,
  ORDERED_DICT,
  SIZE,
  ...OPAQUE,
  ...Object.keys(STORAGE_DTYPES).map((name) => `torch.${name}`),
]);

export function allowedGlobal(name: string, refuse: Refuse): Global {
  if (!ALLOWED.has(name))
    throw refuse(`names ${JSON.stringify(name.slice(0, 200))}, which no tensor file needs`);
  return new Global(name);
}

/** The class that a storage's global names. */
export function storageClass(value: TorchValue | undefined): StorageClass | null {
  const name = value instanceof Global ? value.name.slice('torch.'.length) : '';
  return isStorageClass(name) ? name : null;
}

function isStorageClass(name: string): name is StorageClass {
  return Object.hasOwn(STORAGE_DTYPES, name);
}

/** What REDUCE would have Python call. */
export function reduce(
  callee: TorchValue | undefined,
  args: TorchValue | undefined,
  refuse: Refuse,
): TorchValue {
  if (!(callee instanceof Global) || !(args instanceof PyTuple))
    throw refuse('calls what is no function (REDUCE)');
  const { name } = callee;
  const { items } = args;
  if (name === ORDERED_DICT && items.length === 0) return new Map();
  if (name === SIZE && items[0] instanceof PyTuple && items.length === 1) return items[0];
  if (name === REBUILD_PARAMETER && items[0] instanceof TorchTensor) return items[0];
  if (name === REBUILD_TENSOR) return tensor(items, refuse);
  throw refuse(`calls ${name} with what it does not take (REDUCE)`);
}

/** What NEWOBJ would have Python make. */
export function newObject(
  type: TorchValue | undefined,
  args: TorchValue | undefined,
  refuse: Refuse,
): TorchValue {
  if (!(type instanceof Global) || !OPAQUE.includes(type.name) || !(args instanceof PyTuple))
    throw refuse('makes an object of an unknown class (NEWOBJ)');
  return new OpaqueObject(type.name);
}

/** Whether BUILD may follow: what it sets are attributes that nobody here looks at. */
export function mayBuild(value: TorchValue | undefined): boolean {
  return value instanceof Map || value instanceof OpaqueObject;
}

/** Arguments: storage, first element, shape, strides, requires_grad, hooks. */
function tensor(args: readonly TorchValue[], refuse: Refuse): TorchTensor {
  const [storage, offset, shape, strides] = args;
  const sizes = countsOf(shape);
  const steps = countsOf(strides);
  if (
    !(storage instanceof Storage) ||
    !isCount(offset) ||
    sizes === null ||
    steps === null ||
    sizes.length !== steps.length
  )
    throw refuse('describes a tensor wrongly');
  return new TorchTensor(STORAGE_DTYPES[storage.type], sizes, storage.key, offset, storage.numel, steps);
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function countsOf(value: TorchValue | undefined): number[] | null {
  if (!(value instanceof PyTuple)) return null;
  const counts = value.items.filter(isCount);
  return counts.length === value.items.length ? counts : null;
}
