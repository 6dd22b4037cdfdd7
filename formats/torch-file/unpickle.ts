/**
 * Restricted reader of tensor files' pickles. A pickle is a program for a stack machine, and Python's own
 * reader lets it call any function. This one knows the opcodes that `torch.save` writes for tensors and plain
 * values; globals stay names from an allowlist, and their calls are interpreted, not executed. Everything
 * else is refused by name before anything after it is read.
 */
import { allowedGlobal, isCount, newObject, reduce, storageClass } from './allowed.js';
import { unsafe } from './errors.js';
import { opcodeName } from './opcodes.js';
import { type DictKey, PyFloat, PyRecord, PyTuple, Storage, type TorchValue } from './values.js';

/**
 * Maximum of values on the stack; each takes a byte of the pickle at least. torch.save adds items to their
 * dict a thousand at a time.
 */
const MAX_VALUES = 1_000_000;

class Mark {}
const MARK = new Mark();
type Slot = TorchValue | Mark;

/** @throws ZerofleetError `torch_file_unsafe` */
export function unpickle(pickle: Buffer, file: string): TorchValue {
  return new Machine(pickle, file).run();
}

class Machine {
  private at = 0;
  private readonly stack: Slot[] = [];
  private readonly memo = new Map<number, TorchValue>();

  constructor(
    private readonly pickle: Buffer,
    private readonly file: string,
  ) {}

  run(): TorchValue {
    for (;;) {
      const opcode = this.bytes(1).readUInt8(0);
      if (opcode === STOP) return this.finish();
      const operation = OPERATIONS.get(opcode);
      if (operation === undefined) throw this.refuse(`has the opcode ${opcodeName(opcode)}`);
      operation(this);
      if (this.stack.length > MAX_VALUES) throw this.refuse('holds too many values');
    }
  }

  readonly refuse = (problem: string): Error => unsafe(this.file, problem);

  bytes(count: number): Buffer {
    const part = this.pickle.subarray(this.at, this.at + count);
    if (part.length < count) throw this.refuse('ends early');
    this.at += count;
    return part;
  }

  line(): string {
    const end = this.pickle.indexOf(0x0a, this.at);
    if (end < 0) throw this.refuse('ends early');
    return this.bytes(end + 1 - this.at)
      .toString('latin1')
      .slice(0, -1);
  }

  text(bytes: number): string {
    const encoded = this.bytes(bytes);
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(encoded);
    } catch {
      throw this.refuse('has a text that is not UTF-8');
    }
  }

  push(value: Slot): void {
    this.stack.push(value);
  }

  pop(): TorchValue {
    const value = this.stack.pop();
    if (value === undefined || value instanceof Mark) throw this.refuse('takes from an empty stack');
    return value;
  }

  top(): TorchValue {
    const value = this.pop();
    this.stack.push(value);
    return value;
  }

  /** Removes and returns the values since the last mark, and the mark. */
  sinceMark(): TorchValue[] {
    const at = this.stack.lastIndexOf(MARK);
    if (at < 0) throw this.refuse('has no mark');
    const values = this.stack.splice(at);
    return values.filter((value): value is TorchValue => !(value instanceof Mark));
  }

  remember(key: number): void {
    this.memo.set(key, this.top());
  }

  get nextKey(): number {
    return this.memo.size;
  }

  recall(key: number): void {
    const value = this.memo.get(key);
    if (value === undefined) throw this.refuse('reads a missing memo entry');
    this.push(value);
  }

  setItems(values: readonly TorchValue[]): void {
    const dict = this.top();
    if (!(dict instanceof Map) || values.length % 2 !== 0)
      throw this.refuse('sets an item of a value that is not a dict');
    for (let i = 0; i < values.length; i += 2) {
      const [key, value] = [values[i], values[i + 1]];
      if (!isKey(key) || value === undefined) throw this.refuse('has a key that is neither text nor number');
      if (dict.has(key)) throw this.refuse(`has the key ${JSON.stringify(key).slice(0, 200)} twice`);
      dict.set(key, value);
    }
  }

  append(values: readonly TorchValue[]): void {
    const list = this.top();
    if (!Array.isArray(list)) throw this.refuse('appends to a value that is not a list');
    for (const value of values) list.push(value);
  }

  private finish(): TorchValue {
    const value = this.pop();
    if (this.stack.length > 0) throw this.refuse('leaves values on the stack');
    if (this.at !== this.pickle.length) throw this.refuse('goes on after its end');
    return value;
  }
}

function isKey(value: TorchValue | undefined): value is DictKey {
  return typeof value === 'string' || typeof value === 'number';
}

const STOP = 0x2e;

type Operation = (machine: Machine) => void;

const tuple =
  (count: number): Operation =>
  (machine) => {
    const items: TorchValue[] = [];
    for (let i = 0; i < count; i++) items.unshift(machine.pop());
    machine.push(new PyTuple(items));
  };

/** Reads PyTorch's persistent ids: ('storage', class, key, device, number of elements). */
function persistentId(machine: Machine): void {
  const id = machine.pop();
  const items: readonly TorchValue[] = id instanceof PyTuple ? id.items : [];
  const [kind, type, key, , numel] = items;
  const storage = storageClass(type);
  if (
    items.length !== 5 ||
    kind !== 'storage' ||
    storage === null ||
    typeof key !== 'string' ||
    !isCount(numel)
  )
    throw machine.refuse('has a persistent id that names no storage');
  machine.push(new Storage(storage, key, numel));
}

function protocol(machine: Machine): void {
  const version = machine.bytes(1).readUInt8(0);
  if (version < 2 || version > 5) throw machine.refuse(`is of protocol ${version}`);
}

/** Reads an integer of up to 8 bytes. */
function long(machine: Machine): void {
  const bytes = machine.bytes(1).readUInt8(0);
  let value = 0n;
  for (const [i, byte] of machine.bytes(bytes).entries()) value |= BigInt(byte) << BigInt(8 * i);
  const number = Number(BigInt.asIntN(8 * bytes, value));
  if (!Number.isSafeInteger(number)) throw machine.refuse('has a number of more than 53 bits');
  machine.push(number);
}

function stackGlobal(machine: Machine): void {
  const [name, module] = [machine.pop(), machine.pop()];
  if (typeof name !== 'string' || typeof module !== 'string') throw machine.refuse('names no global');
  machine.push(allowedGlobal(`${module}.${name}`, machine.refuse));
}

/** Sets the attributes of a record. Attributes of an OrderedDict are dropped. */
function build(machine: Machine): void {
  const state = machine.pop();
  const target = machine.top();
  // No copy: a pickle may set the same large dict repeatedly.
  if (target instanceof PyRecord && state instanceof Map) target.attributes = state;
  else if (!(target instanceof PyRecord || target instanceof Map))
    throw machine.refuse('sets the state of an object (BUILD)');
}

const swapped =
  (make: typeof reduce): Operation =>
  (machine) => {
    const args = machine.pop();
    machine.push(make(machine.pop(), args, machine.refuse));
  };

/** Operations by their opcodes in Python's `pickletools`. */
const OPERATIONS: ReadonlyMap<number, Operation> = new Map<number, Operation>([
  [0x80, protocol],
  // FRAME: a length that only helps to read ahead
  [0x95, (m) => void m.bytes(8)],
  [0x28, (m) => m.push(MARK)],
  [0x4e, (m) => m.push(null)],
  [0x88, (m) => m.push(true)],
  [0x89, (m) => m.push(false)],
  // BININT, BININT1, BININT2, LONG1, BINFLOAT
  [0x4a, (m) => m.push(m.bytes(4).readInt32LE(0))],
  [0x4b, (m) => m.push(m.bytes(1).readUInt8(0))],
  [0x4d, (m) => m.push(m.bytes(2).readUInt16LE(0))],
  [0x8a, long],
  [0x47, (m) => m.push(new PyFloat(m.bytes(8).readDoubleBE(0)))],
  // BINUNICODE, SHORT_BINUNICODE
  [0x58, (m) => m.push(m.text(m.bytes(4).readUInt32LE(0)))],
  [0x8c, (m) => m.push(m.text(m.bytes(1).readUInt8(0)))],
  // EMPTY_LIST, APPEND, APPENDS
  [0x5d, (m) => m.push([])],
  [
    0x61,
    (m) => {
      const value = m.pop();
      m.append([value]);
    },
  ],
  [
    0x65,
    (m) => {
      const values = m.sinceMark();
      m.append(values);
    },
  ],
  // EMPTY_DICT, SETITEM, SETITEMS
  [0x7d, (m) => m.push(new Map())],
  [
    0x73,
    (m) => {
      const value = m.pop();
      const key = m.pop();
      m.setItems([key, value]);
    },
  ],
  [
    0x75,
    (m) => {
      const values = m.sinceMark();
      m.setItems(values);
    },
  ],
  // EMPTY_TUPLE, TUPLE1, TUPLE2, TUPLE3, TUPLE
  [0x29, tuple(0)],
  [0x85, tuple(1)],
  [0x86, tuple(2)],
  [0x87, tuple(3)],
  [0x74, (m) => m.push(new PyTuple(m.sinceMark()))],
  // BINPUT, LONG_BINPUT, MEMOIZE, BINGET, LONG_BINGET
  [0x71, (m) => m.remember(m.bytes(1).readUInt8(0))],
  [0x72, (m) => m.remember(m.bytes(4).readUInt32LE(0))],
  [0x94, (m) => m.remember(m.nextKey)],
  [0x68, (m) => m.recall(m.bytes(1).readUInt8(0))],
  [0x6a, (m) => m.recall(m.bytes(4).readUInt32LE(0))],
  // GLOBAL, STACK_GLOBAL, BINPERSID, REDUCE, NEWOBJ, BUILD
  [
    0x63,
    (m) => {
      const module = m.line();
      m.push(allowedGlobal(`${module}.${m.line()}`, m.refuse));
    },
  ],
  [0x93, stackGlobal],
  [0x51, persistentId],
  [0x52, swapped(reduce)],
  [0x81, swapped(newObject)],
  [0x62, build],
]);
