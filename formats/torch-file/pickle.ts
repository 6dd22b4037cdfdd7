/**
 * Writes the pickles of tensor files: protocol 2, like `torch.save`, so that every PyTorch since 1.6 reads
 * them.
 */
import {
  Global,
  PyFloat,
  PyRecord,
  PyTuple,
  STORAGE_DTYPES,
  Storage,
  type StorageClass,
  type TorchDtype,
  TorchTensor,
  type TorchValue,
} from './values.js';

export function pickle(value: TorchValue): Buffer {
  const parts: Buffer[] = [Buffer.from([0x80, 2])];
  write(value, parts);
  parts.push(opcode('.'));
  return Buffer.concat(parts);
}

/** Plain recursion suffices, because only our own documents are written. */
function write(value: TorchValue, parts: Buffer[]): void {
  if (value === null) parts.push(opcode('N'));
  else if (typeof value === 'boolean') parts.push(Buffer.from([value ? 0x88 : 0x89]));
  else if (typeof value === 'number') parts.push(integer(value));
  else if (typeof value === 'string') parts.push(text(value));
  else if (value instanceof PyFloat) parts.push(float(value.value));
  else if (value instanceof PyTuple) writeTuple(value.items, parts);
  else if (value instanceof TorchTensor) writeTensor(value, parts);
  else if (value instanceof Storage) writeStorage(value, parts);
  else if (value instanceof Map) writeDict(value, parts);
  else if (Array.isArray(value)) writeList(value, parts);
  else if (value instanceof Global) parts.push(global(value.name));
  else if (value instanceof PyRecord) writeRecord(value, parts);
}

/** Writes an object by NEWOBJ, and its attributes by BUILD. */
function writeRecord({ name, args, attributes }: PyRecord, parts: Buffer[]): void {
  parts.push(global(name));
  writeTuple(args, parts);
  parts.push(Buffer.from([0x81]));
  writeDict(attributes, parts);
  parts.push(opcode('b'));
}

function writeTuple(items: readonly TorchValue[], parts: Buffer[]): void {
  if (items.length === 0) {
    parts.push(opcode(')'));
    return;
  }
  parts.push(opcode('('));
  for (const item of items) write(item, parts);
  parts.push(opcode('t'));
}

function writeList(items: readonly TorchValue[], parts: Buffer[]): void {
  parts.push(opcode(']'));
  if (items.length === 0) return;
  parts.push(opcode('('));
  for (const item of items) write(item, parts);
  parts.push(opcode('e'));
}

function writeDict(dict: ReadonlyMap<string | number, TorchValue>, parts: Buffer[]): void {
  parts.push(opcode('}'));
  if (dict.size === 0) return;
  parts.push(opcode('('));
  for (const [key, item] of dict) {
    write(key, parts);
    write(item, parts);
  }
  parts.push(opcode('u'));
}

/** Writes a call of `_rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks)`. */
function writeTensor(tensor: TorchTensor, parts: Buffer[]): void {
  const { dtype, storage, storageNumel, offset, shape, strides } = tensor;
  parts.push(global('torch._utils._rebuild_tensor_v2'), opcode('('));
  write(new Storage(storageOf(dtype), storage, storageNumel), parts);
  write(offset, parts);
  write(new PyTuple([...shape]), parts);
  write(new PyTuple([...strides]), parts);
  write(false, parts);
  parts.push(global('collections.OrderedDict'), opcode(')'), opcode('R'), opcode('t'), opcode('R'));
}

function writeStorage({ type, key, numel }: Storage, parts: Buffer[]): void {
  parts.push(opcode('('), text('storage'), global(`torch.${type}`), text(key), text('cpu'), integer(numel));
  parts.push(opcode('t'), opcode('Q'));
}

function storageOf(dtype: TorchDtype): StorageClass {
  for (const [name, storageDtype] of Object.entries(STORAGE_DTYPES))
    if (storageDtype === dtype && isStorage(name)) return name;
  throw new TypeError(`there is no storage of ${dtype}`);
}

function isStorage(name: string): name is StorageClass {
  return Object.hasOwn(STORAGE_DTYPES, name);
}

function opcode(letter: string): Buffer {
  return Buffer.from(letter, 'latin1');
}

/** Writes a name, `module.name`. */
function global(name: string): Buffer {
  const dot = name.lastIndexOf('.');
  return Buffer.from(`c${name.slice(0, dot)}\n${name.slice(dot + 1)}\n`, 'latin1');
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const head = Buffer.alloc(5, 'X');
  head.writeUInt32LE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

function float(value: number): Buffer {
  const bytes = Buffer.alloc(9, 'G');
  bytes.writeDoubleBE(value, 1);
  return bytes;
}

/** Writes BININT, or LONG1 where 32 bits are too few. */
function integer(value: number): Buffer {
  if (!Number.isSafeInteger(value)) throw new TypeError(`${value} is no whole number; use PyFloat`);
  const isShort = value === (value | 0);
  const bytes = Buffer.alloc(isShort ? 5 : 10);
  bytes.write(isShort ? 'J' : '\x8a\x08', 'latin1');
  if (isShort) bytes.writeInt32LE(value, 1);
  else bytes.writeBigInt64LE(BigInt(value), 2);
  return bytes;
}
