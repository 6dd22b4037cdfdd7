import { ELEMENT_BYTES } from '../safetensors/header.js';
import { pickle } from './pickle.js';
import { type TorchDtype, TorchTensor, type TorchValue } from './values.js';
import { type NewEntry, zipArchive } from './zip-write.js';

/** Elements of a tensor in pieces, little-endian and row-major. */
type TensorContent = () => AsyncIterable<Uint8Array>;

/** Default folder name of `torch.save`; any name is valid. */
const FOLDER = 'archive';

/**
 * Builds one file of `torch.save`: describe its tensors first, then include the descriptions in a value and
 * write that.
 */
export class TorchFileWriter {
  private readonly storages: { bytes: number; content: TensorContent }[] = [];

  /** Returns a tensor with its own storage, for use in the value. */
  tensor(dtype: TorchDtype, shape: readonly number[], content: TensorContent): TorchTensor {
    const strides: number[] = [];
    let numel = 1;
    for (const size of [...shape].reverse()) {
      strides.unshift(numel);
      numel *= size;
    }
    const key = String(this.storages.length);
    this.storages.push({ bytes: numel * ELEMENT_BYTES[dtype], content });
    return new TorchTensor(dtype, shape, key, 0, numel, strides);
  }

  /** Streams the file's bytes together with those of the tensors; may be called again. */
  file(value: TorchValue): AsyncGenerator<Uint8Array> {
    return zipArchive(this.entries(value));
  }

  private *entries(value: TorchValue): Generator<NewEntry> {
    const record = (name: string, content: Buffer): NewEntry => ({
      name: `${FOLDER}/${name}`,
      bytes: content.length,
      content: [content],
    });
    yield record('data.pkl', pickle(value));
    yield record('byteorder', Buffer.from('little'));
    for (const [key, { bytes, content }] of this.storages.entries())
      yield { name: `${FOLDER}/data/${key}`, bytes, content: content() };
    yield record('version', Buffer.from('3\n'));
  }
}

/** Returns the content of a tensor in memory. */
export function inMemory(bytes: Uint8Array): TensorContent {
  return async function* () {
    yield bytes;
  };
}
