/** Files of `torch.save` (since PyTorch 1.6: a zip archive with a pickle and one entry for each storage). */
import { ELEMENT_BYTES } from '../safetensors/header.js';
import type { ByteSource } from './byte-source.js';
import { malformed, shown } from './errors.js';
import { unpickle } from './unpickle.js';
import { PyFloat, TorchTensor, type TorchValue } from './values.js';
import { type ScannedEntry, scanZip } from './zip-scan.js';

/** Location of a tensor's elements in its file, row-major and without gaps. */
export interface TensorLocation {
  byte_begin: number;
  byte_end: number;
  /** Content of small tensors. */
  content: Buffer | null;
}

export interface TorchFile {
  value: TorchValue;
  /** @throws ZerofleetError `torch_file_invalid` when the tensor does not fit its storage */
  location(tensor: TorchTensor): TensorLocation;
}

/** The pickle of a model with a hundred thousand tensors has some megabytes. */
const MAX_PICKLE_BYTES = 16 * 1024 * 1024;
/** Size of counters and flags. */
const SMALL_BYTES = 64;
const PICKLE = 'data.pkl';
const FORMAT_VERSION = '3';

/**
 * Reads and checks a whole file once, in pieces: the archive with its checksums, the pickle without executing
 * it, and that every tensor lies within its storage.
 * @throws ZerofleetError `torch_file_invalid`, `torch_file_unsafe`; errors of the source
 */
export async function readTorchFile(source: ByteSource): Promise<TorchFile> {
  const { name: file } = source;
  let kept: string | null = null;
  // Keeps one pickle only: an archive may have any number of entries with that name.
  const entries = await scanZip(source, (name) => {
    kept ??= `${name.split('/', 1)[0]}/${PICKLE}`;
    return name === kept ? MAX_PICKLE_BYTES : SMALL_BYTES;
  });
  const { folder, records } = recordsOf(entries, file);
  const content = (name: string) => records.get(name)?.content?.toString('latin1').trim();
  const version = content('version') ?? content('.data/version');
  if (version !== FORMAT_VERSION)
    throw malformed(
      file,
      `is of version ${shown(version ?? 'none')} of torch.save; ${FORMAT_VERSION} is read`,
    );
  const order = content('byteorder') ?? 'little';
  if (order !== 'little') throw malformed(file, `its byte order is ${shown(order)}; little is read`);
  const pickle = records.get(PICKLE);
  if (pickle === undefined) throw malformed(file, `has no ${folder}/${PICKLE}`);
  if (pickle.content === null)
    throw malformed(
      file,
      `has a pickle of ${pickle.end - pickle.begin} bytes; at most ${MAX_PICKLE_BYTES} are read`,
    );
  const value = unpickle(pickle.content, file);
  return { value, location: (tensor) => locationOf(tensor, records, file) };
}

/** Checks that all entries lie in one folder, which may have any name. */
function recordsOf(
  entries: readonly ScannedEntry[],
  file: string,
): { folder: string; records: Map<string, ScannedEntry> } {
  const folder = entries[0]?.name.split('/')[0] ?? '';
  const records = new Map<string, ScannedEntry>();
  for (const entry of entries) {
    if (!entry.name.startsWith(`${folder}/`))
      throw malformed(
        file,
        `entry ${shown(entry.name)} is not in the folder ${shown(folder)} like the others`,
      );
    records.set(entry.name.slice(folder.length + 1), entry);
  }
  return { folder, records };
}

function locationOf(
  tensor: TorchTensor,
  records: ReadonlyMap<string, ScannedEntry>,
  file: string,
): TensorLocation {
  const { dtype, shape, storage, offset, storageNumel, numel } = tensor;
  const entry = records.get(`data/${storage}`);
  const fail = (problem: string) => malformed(file, `a tensor of shape [${shape}] ${problem}`);
  if (entry === undefined) throw fail(`has the storage ${shown(storage)}, which is missing`);
  const element = ELEMENT_BYTES[dtype];
  if (entry.end - entry.begin !== storageNumel * element)
    throw fail(`has ${storageNumel} elements of ${dtype} in a storage of ${entry.end - entry.begin} bytes`);
  if (!Number.isSafeInteger(numel) || offset + numel > storageNumel) throw fail('reaches beyond its storage');
  if (!isRowMajor(tensor)) throw fail(`has the strides [${tensor.strides}]; save it with .contiguous()`);
  const begin = offset * element;
  const end = begin + numel * element;
  return {
    byte_begin: entry.begin + begin,
    byte_end: entry.begin + end,
    content: entry.content?.subarray(begin, end) ?? null,
  };
}

/** Strides of dimensions with one element are ignored. */
function isRowMajor({ shape, strides, numel }: TorchTensor): boolean {
  if (numel === 0) return true;
  let expected = 1;
  for (let i = shape.length - 1; i >= 0; i--) {
    const size = shape[i] ?? 0;
    if (size !== 1 && strides[i] !== expected) return false;
    expected *= size;
  }
  return true;
}

/** Returns a number stored as such or as a tensor of one element; null for other values. */
export function scalarOf(file: TorchFile, value: TorchValue | undefined): number | null {
  if (value instanceof PyFloat) return value.value;
  if (typeof value === 'number') return value;
  if (!(value instanceof TorchTensor) || value.numel !== 1) return null;
  const { content } = file.location(value);
  if (content === null) return null;
  if (value.dtype === 'F32') return content.readFloatLE(0);
  if (value.dtype === 'F64') return content.readDoubleLE(0);
  if (value.dtype === 'I32') return content.readInt32LE(0);
  if (value.dtype === 'I64') return Number(content.readBigInt64LE(0));
  return null;
}
