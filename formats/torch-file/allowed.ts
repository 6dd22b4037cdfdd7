/**
 * Allowlist of globals that a pickle may name, with an interpretation of calls. No global is ever executed.
 */
import {
  Global,
  PyRecord,
  PyTuple,
  STORAGE_DTYPES,
  Storage,
  type StorageClass,
  TorchTensor,
  type TorchValue,
} from './values.js';

/** Creates the refusal; the message continues "its pickle". */
type Refuse = (problem: string) => Error;

/** Interpretation of a call; undefined for invalid arguments. */
type Call = (args: readonly TorchValue[], refuse: Refuse) => TorchValue | undefined;

const firstTensor: Call = ([tensor]) => (tensor instanceof TorchTensor ? tensor : undefined);

const CALLS: Readonly<Record<string, Call>> = {
  'torch._utils._rebuild_tensor_v2': rebuildTensor,
  'torch._utils._rebuild_parameter': firstTensor,
  'torch._utils._rebuild_parameter_with_state': firstTensor,
  'torch._tensor._rebuild_from_type_v2': rebuildFromType,
  'collections.OrderedDict': (args) => (args.length === 0 ? new Map() : undefined),
  'torch.Size': ([sizes, ...rest]) => (sizes instanceof PyTuple && rest.length === 0 ? sizes : undefined),
  '__builtin__.getattr': enumMember,
  'builtins.getattr': enumMember,
};

const ZERO_STAGE = 'deepspeed.runtime.zero.config.ZeroStageEnum';

/** Classes and functions that become records: DeepSpeed's, and those of other modules that it pickles. */
const RECORDS: readonly string[] = [
  ZERO_STAGE,
  'deepspeed.runtime.fp16.loss_scaler.LossScaler',
  'deepspeed.runtime.fp16.loss_scaler.DynamicLossScaler',
  'deepspeed.utils.tensor_fragment.fragment_address',
  'deepspeed.checkpoint.universal_checkpoint.SubparamShape',
  'torch.device',
  '__builtin__.set',
  'builtins.set',
  // NumPy numbers, such as learning rates. Bytes are pickled as a text and its encoding.
  'numpy.core.multiarray.scalar',
  'numpy._core.multiarray.scalar',
  'numpy.dtype',
  '_codecs.encode',
];

/** Constants, which are never called. */
const CONSTANTS: readonly string[] = [
  ...Object.keys(STORAGE_DTYPES),
  ...['Tensor', 'nn.parameter.Parameter'],
  ...['bool', 'uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64'],
].map((name) => `torch.${name}`);

const ALLOWED: ReadonlySet<string> = new Set([...Object.keys(CALLS), ...RECORDS, ...CONSTANTS]);

/** Maximum of dimensions in `torch.save`. */
const MAX_DIMENSIONS = 64;

export function allowedGlobal(name: string, refuse: Refuse): Global {
  if (!ALLOWED.has(name))
    throw refuse(`names ${JSON.stringify(name.slice(0, 200))}, which is not allowed in a tensor file`);
  return new Global(name);
}

/** Returns the storage class that a global names. */
export function storageClass(value: TorchValue | undefined): StorageClass | null {
  const name = value instanceof Global ? value.name.slice('torch.'.length) : '';
  return isStorageClass(name) ? name : null;
}

function isStorageClass(name: string): name is StorageClass {
  return Object.hasOwn(STORAGE_DTYPES, name);
}

/** Interprets a call by REDUCE. */
export function reduce(
  callee: TorchValue | undefined,
  args: TorchValue | undefined,
  refuse: Refuse,
): TorchValue {
  if (!(callee instanceof Global) || !(args instanceof PyTuple))
    throw refuse('calls a value that is not a function (REDUCE)');
  const { name } = callee;
  const made = RECORDS.includes(name) ? new PyRecord(name, args.items) : CALLS[name]?.(args.items, refuse);
  if (made === undefined) throw refuse(`calls ${name} with invalid arguments (REDUCE)`);
  return made;
}

/** Interprets an object created by NEWOBJ. */
export function newObject(
  type: TorchValue | undefined,
  args: TorchValue | undefined,
  refuse: Refuse,
): TorchValue {
  if (!(type instanceof Global) || !RECORDS.includes(type.name) || !(args instanceof PyTuple))
    throw refuse('makes an object of an unknown class (NEWOBJ)');
  return new PyRecord(type.name, args.items);
}

/** Arguments: storage, first element, shape, strides, requires_grad, hooks. */
function rebuildTensor(args: readonly TorchValue[], refuse: Refuse): TorchTensor {
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
    throw refuse('describes an invalid tensor');
  return new TorchTensor(STORAGE_DTYPES[storage.type], sizes, storage.key, offset, storage.numel, steps);
}

/**
 * Tensor with custom attributes, which are dropped. Arguments: function, class, the function's arguments,
 * attributes.
 */
function rebuildFromType(
  [callee, type, args]: readonly TorchValue[],
  refuse: Refuse,
): TorchValue | undefined {
  const isTensorClass =
    type instanceof Global && /^torch\.(Tensor|nn\.parameter\.Parameter)$/.test(type.name);
  const isTensorCall = callee instanceof Global && /^torch\._utils\._rebuild_/.test(callee.name);
  return isTensorClass && isTensorCall ? reduce(callee, args, refuse) : undefined;
}

/** Python 3.11 pickled the members of an enumeration as its attributes. */
function enumMember([type, member, ...rest]: readonly TorchValue[]): TorchValue | undefined {
  const isEnum = type instanceof Global && type.name === ZERO_STAGE;
  return isEnum && typeof member === 'string' && rest.length === 0
    ? new PyRecord(type.name, [member])
    : undefined;
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function countsOf(value: TorchValue | undefined): number[] | null {
  if (!(value instanceof PyTuple) || value.items.length > MAX_DIMENSIONS) return null;
  const counts = value.items.filter(isCount);
  return counts.length === value.items.length ? counts : null;
}
