import { createHash } from 'node:crypto';
import { type Dataset, ZerofleetError } from '../../../contracts/index.js';
import type { ObjectStore } from '../../../platform/object-store/common/port.js';

/**
 * Streams a dataset's bytes; ends without an error only if they equal the upload.
 * @param onProgress called with the number of bytes read so far
 * @throws ZerofleetError `dataset_corrupt`; errors of the object store
 */
export async function* verifiedBytes(
  objects: ObjectStore,
  { dataset, object_key }: { dataset: Dataset; object_key: string },
  onProgress: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of await objects.stream(object_key)) {
    if (chunk.length === 0) continue;
    hash.update(chunk);
    bytes += chunk.length;
    onProgress(bytes);
    yield chunk;
  }
  const digest = `sha256:${hash.digest('hex')}`;
  if (digest === dataset.digest && bytes === dataset.bytes) return;
  throw corruptDataset(
    dataset,
    `${bytes} bytes with digest ${digest}, but the upload has ${dataset.bytes} with ${dataset.digest}`,
  );
}

export function corruptDataset({ id }: Dataset, reason: string): ZerofleetError {
  return new ZerofleetError('dataset_corrupt', `dataset ${id} has ${reason}`);
}
