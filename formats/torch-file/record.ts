/** JSON form of a parsed file of `torch.save`, for another thread. */
import { type ErrorCode, ZerofleetError } from '../../contracts/index.js';
import { malformed } from './errors.js';
import type { TensorLocation, TorchFile } from './read.js';
import {
  type DictKey,
  Global,
  PyFloat,
  PyRecord,
  PyTuple,
  type TorchDict,
  type TorchDtype,
  TorchTensor,
  type TorchValue,
} from './values.js';

/** Plain values represent themselves. */
export type TorchFileRecord =
  | null
  | boolean
  | number
  | string
  | TorchFileRecord[]
  | { float: number | string }
  | { tuple: TorchFileRecord[] }
  | { dict: [DictKey, TorchFileRecord][] }
  | { record: string; args: TorchFileRecord[]; attributes: [DictKey, TorchFileRecord][] }
  | { global: string }
  | { tensor: TorchDtype; shape: readonly number[]; location: LocationRecord };

/** Location of a tensor, or the error of reading it: most checkpoints have tensors that are never read. */
type LocationRecord =
  | { begin: number; end: number; content: string | null }
  | { code: ErrorCode; problem: string };

/**
 * More than any checkpoint has: a pickle may refer to the same value repeatedly, and here each reference is
 * written out.
 */
const MAX_VALUES = 2_000_000;

/** @throws ZerofleetError `torch_file_invalid` for too many values */
export function encodeTorchFile(name: string, file: TorchFile): TorchFileRecord {
  let left = MAX_VALUES;
  const entries = (dict: TorchDict): [DictKey, TorchFileRecord][] =>
    [...dict].map(([key, value]) => [key, encode(value)]);
  const encode = (value: TorchValue): TorchFileRecord => {
    left -= 1;
    if (left < 0) throw malformed(name, `has more than ${MAX_VALUES} values`);
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map(encode);
    if (value instanceof Map) return { dict: entries(value) };
    if (value instanceof PyTuple) return { tuple: value.items.map(encode) };
    if (value instanceof PyFloat) return floatOf(value);
    if (value instanceof PyRecord)
      return { record: value.name, args: value.args.map(encode), attributes: entries(value.attributes) };
    if (value instanceof Global) return { global: value.name };
    if (!(value instanceof TorchTensor)) return null; // a storage without a tensor has no meaning
    return { tensor: value.dtype, shape: value.shape, location: locationOf(file, value) };
  };
  return encode(file.value);
}

/** JSON has only finite numbers. */
function floatOf({ value }: PyFloat): { float: number | string } {
  return { float: Number.isFinite(value) ? value : String(value) };
}

function locationOf(file: TorchFile, tensor: TorchTensor): LocationRecord {
  try {
    const { byte_begin, byte_end, content } = file.location(tensor);
    return { begin: byte_begin, end: byte_end, content: content?.toString('base64') ?? null };
  } catch (error) {
    if (error instanceof ZerofleetError) return { code: error.code, problem: error.message };
    throw error;
  }
}

export function decodeTorchFile(record: TorchFileRecord): TorchFile {
  const locations = new Map<TorchTensor, LocationRecord>();
  const dictOf = (entries: readonly [DictKey, TorchFileRecord][]): TorchDict =>
    new Map(entries.map(([key, value]) => [key, decode(value)]));
  const decode = (node: TorchFileRecord): TorchValue => {
    if (typeof node !== 'object' || node === null) return node;
    if (Array.isArray(node)) return node.map(decode);
    if ('dict' in node) return dictOf(node.dict);
    if ('tuple' in node) return new PyTuple(node.tuple.map(decode));
    if ('float' in node) return new PyFloat(Number(node.float));
    if ('global' in node) return new Global(node.global);
    if ('record' in node) {
      const made = new PyRecord(node.record, node.args.map(decode));
      made.attributes = dictOf(node.attributes);
      return made;
    }
    const tensor = new TorchTensor(node.tensor, node.shape, '', 0, 0, []);
    locations.set(tensor, node.location);
    return tensor;
  };
  const location = (tensor: TorchTensor): TensorLocation => {
    const known = locations.get(tensor) as LocationRecord;
    if ('problem' in known) throw new ZerofleetError(known.code, known.problem);
    const { begin, end, content } = known;
    return {
      byte_begin: begin,
      byte_end: end,
      content: content === null ? null : Buffer.from(content, 'base64'),
    };
  };
  return { value: decode(record), location };
}
