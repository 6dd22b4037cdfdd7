import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Dataset, type ResolvedJobSpec, ZerofleetError } from '../../contracts/index.js';
import {
  decodeTokenFileHeader,
  TOKEN_FILE_HEADER_BYTES,
  tokenFileLayout,
} from '../../contracts/token-file.js';
import type { ObjectStore } from '../../platform/object-store/port.js';
import { SplitPacker } from './packing.js';
import { SequenceFiles } from './sequence-files.js';

export interface TokenRequest {
  dataset: Dataset;
  /** Where the dataset's bytes lie in the object store. */
  object_key: string;
  /** How they are read. */
  data: ResolvedJobSpec['data'];
  sequence_length: number;
  /** Absolute; made when missing. */
  cache_dir: string;
}

/** Absolute paths of token files. */
export interface PreparedTokens {
  token_file: string;
  /** What to evaluate on; null where nothing is set aside. */
  validation_file: string | null;
}

/** Temporary files of dead preparations are removed when they are older than this. */
const STALE_TEMP_MS = 24 * 3600 * 1000;
/** Part of every name: raised when the same request comes to make other files. */
const PREPARATION = 1;

/**
 * Makes a job's token files, or finds them from an earlier time: their name is the digest of all that they are made from,
 * and they appear under it only when they are whole and on disk. Any number of processes may do this at once.
 * Memory use does not depend on the size of the dataset.
 * @throws `dataset_corrupt` when the stored bytes are not the ones that were uploaded; `dataset_too_small`; errors of
 *   the object store and of the file system (ENOSPC) as they are
 */
export async function prepareTokens(objects: ObjectStore, request: TokenRequest): Promise<PreparedTokens> {
  const { cache_dir, data } = request;
  const name = join(cache_dir, nameOf(request));
  const training = `${name}.training`;
  const validation = data.validation_fraction > 0 ? `${name}.validation` : null;
  const paths = validation === null ? [training] : [training, validation];
  const found = await Promise.all(paths.map(isWhole));
  if (!found.every((whole) => whole)) {
    await mkdir(cache_dir, { recursive: true });
    await removeStale(cache_dir);
    await makeFiles(objects, request, paths);
    await syncDirectory(cache_dir);
  }
  return { token_file: training, validation_file: validation };
}

function nameOf({ dataset, data, sequence_length }: TokenRequest): string {
  const { tokenizer, validation_fraction, seed } = data;
  const made_from = [
    PREPARATION,
    dataset.digest,
    dataset.format,
    tokenizer,
    sequence_length,
    ...(validation_fraction > 0 ? [validation_fraction, seed] : []),
  ];
  return createHash('sha256').update(JSON.stringify(made_from)).digest('hex');
}

async function makeFiles(objects: ObjectStore, request: TokenRequest, paths: string[]): Promise<void> {
  const { data, sequence_length } = request;
  const temporary = (path: string) => `${path}.${attempt}.tmp`;
  const attempt = randomUUID();
  const [training = '', validation = `${training}-none`] = paths;
  const files = new SequenceFiles({
    shape: { token_bytes: 2, sequence_length },
    training: temporary(training),
    validation: temporary(validation),
    split: { fraction: data.validation_fraction, seed: data.seed },
    num_documents: 1,
    // A text has always been cut without its rest, and the bits of a training depend on it.
    newPacker: (onSequence) => new SplitPacker(sequence_length, false, onSequence),
  });
  try {
    let starts = true;
    for await (const chunk of verified(objects, request)) {
      // The `bytes` tokenizer: a token is a byte.
      files.append(new Uint16Array(chunk), null, starts);
      starts = false;
    }
    files.finish();
    for (const path of paths) await rename(temporary(path), path);
  } finally {
    files.discard();
  }
}

/** The dataset's bytes; the end is reached only when they are the ones that were uploaded. */
async function* verified(
  objects: ObjectStore,
  { dataset, object_key }: TokenRequest,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of await objects.stream(object_key)) {
    if (chunk.length === 0) continue;
    hash.update(chunk);
    bytes += chunk.length;
    yield chunk;
  }
  const digest = `sha256:${hash.digest('hex')}`;
  if (digest === dataset.digest && bytes === dataset.bytes) return;
  throw new ZerofleetError(
    'dataset_corrupt',
    `dataset ${dataset.id} has ${bytes} bytes with digest ${digest}; ${dataset.bytes} with ${dataset.digest} were uploaded`,
  );
}

/** Whether there is a token file that is as long as its header says. */
async function isWhole(path: string): Promise<boolean> {
  const info = await stat(path).catch(() => null);
  if (!info?.isFile()) return false;
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(TOKEN_FILE_HEADER_BYTES), 0);
    const header = decodeTokenFileHeader(buffer.subarray(0, bytesRead));
    return header !== null && tokenFileLayout(header).end === info.size;
  } finally {
    await file.close();
  }
}

async function removeStale(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!name.endsWith('.tmp')) continue;
    const path = join(directory, name);
    const info = await stat(path).catch(() => null);
    if (info && Date.now() - info.mtimeMs > STALE_TEMP_MS) await rm(path, { force: true });
  }
}

/** A rename is durable only when its directory is. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
