import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Dataset, type ResolvedJobSpec, ZerofleetError } from '../../../contracts/index.js';
import {
  decodeTokenFileHeader,
  TOKEN_FILE_HEADER_BYTES,
  tokenFileLayout,
} from '../../../contracts/token-file.js';
import { DataCounts, type DataSummary } from '../../../formats/encoding/data-summary.js';
import type { TokenizerFiles } from '../../../formats/encoding/hf-tokenizer.js';
import { readTokenizer } from '../../../formats/encoding/tokenizer-store.js';
import { tokenizerModel, type Unit, unitsOf } from '../../../job-document/index.js';
import type { ObjectStore } from '../../../platform/object-store/common/port.js';
import { codeOf } from '../../shared/errors.js';
import { FitFile } from './fit.js';
import { type OnSequence, type Packer, SplitPacker, WholePacker } from './packing.js';
import { PackedFile, type SequenceCounts, type SequenceFile, SequenceFiles } from './sequence-files.js';
import { evict, markUse, putEntry, removeTemporary, sealOf, temporaryPath } from './token-cache.js';
import type { TokenFileWriter } from './token-file-writer.js';
import { tokenSource } from './token-source.js';
import { UnitFiles } from './unit-files.js';
import { corruptDataset, verifiedBytes } from './verified-bytes.js';

export interface TokenRequest {
  dataset: Dataset;
  /** Key of the dataset in the object store. */
  object_key: string;
  /** The `data` section of the job's spec. */
  data: ResolvedJobSpec['data'];
  /** Unit that batches of preferences count; null for other data. */
  unit: Unit | null;
  sequence_length: number;
  /** Vocabulary size of the model, an exclusive upper bound of the tokens. */
  vocab_size: number;
  /** Absolute path; created when missing. */
  cache_dir: string;
  /** Size to which unused entries of the cache are evicted. */
  cache_bytes: number;
  /** Threads of the tokenizer; the files do not depend on their number. */
  num_threads: number;
  /** Id of this preparation: names its temporary directory and its use mark. */
  attempt: string;
}

/** Token files of a job. */
export interface PreparedTokens {
  /** Absolute paths of token files. */
  token_file: string;
  /** Validation data; null without a validation split. */
  validation_file: string | null;
  /** SHA-256 of the concatenation of both files, with its algorithm: `sha256:…`. */
  tokens_digest: string;
  summary: DataSummary & SequenceCounts;
}

/** Content of the entry's summary file. */
type EntrySummary = Pick<PreparedTokens, 'tokens_digest' | 'summary'>;

/** Called with the number of bytes of the dataset read so far. */
type OnProgress = (bytes: number) => void;

/** Version in every cache key: incremented when the same request produces other files. */
const PREPARATION = 8;
/** Token ids below it need two bytes. */
const NARROW_VOCAB = 1 << 16;
/** Maximum number of rebuilds of an entry that disappears each time. */
const MAX_BUILDS = 10;

/** Files of an entry of the cache. */
interface EntryPaths {
  training: string;
  /** Null without a validation split. */
  validation: string | null;
  summary: string;
}

/**
 * Builds a job's token files, or finds them in the cache. Their name is the digest of all inputs. They appear under it
 * only when they are complete and on disk. Any number of processes may call this at once. The entry is marked as used
 * by `attempt`. Memory use does not depend on the size of the dataset.
 * @throws ZerofleetError `dataset_corrupt` when the stored bytes differ from the uploaded ones; `dataset_too_small`;
 *   `no_targets`; `token_out_of_vocab`; `model_not_found`, `tokenizer_invalid` and `chat_template_invalid` for the
 *   tokenizer's model; `dataset_line_invalid`, `dataset_tokens_invalid`; errors of the object store and of the file
 *   system (ENOSPC)
 */
export async function prepareTokens(
  objects: ObjectStore,
  request: TokenRequest,
  onProgress: OnProgress = () => undefined,
): Promise<PreparedTokens> {
  const { cache_dir, cache_bytes, data, attempt } = request;
  const model = tokenizerModel(data);
  const tokenizer = model === null ? null : await readTokenizer(objects, model);
  const entry = join(cache_dir, nameOf(request, tokenizer));
  const paths = pathsIn(entry, data);
  await mkdir(cache_dir, { recursive: true });
  const find = async () => ((await markUse(entry, attempt)) ? findFiles(paths) : null);
  let found = await find();
  // A user or a full disk may remove a new entry; the program itself does not remove it that often.
  for (let made = 0; !found && made < MAX_BUILDS; made += 1) {
    await buildEntry({ objects, request, tokenizer, onProgress }, entry);
    found = await find();
  }
  if (!found) throw new Error(`${entry} was built ${MAX_BUILDS} times and is incomplete`);
  await evict(cache_dir, cache_bytes);
  checkVocab(found.summary.max_token, request);
  return { token_file: paths.training, validation_file: paths.validation, ...found };
}

/** Removes the files of a preparation that was killed. */
export function removeAttempt({ cache_dir, attempt }: TokenRequest): Promise<void> {
  return removeTemporary(cache_dir, attempt);
}

function pathsIn(directory: string, { validation_fraction }: TokenRequest['data']): EntryPaths {
  return {
    training: join(directory, 'training'),
    validation: validation_fraction > 0 ? join(directory, 'validation') : null,
    summary: sealOf(directory),
  };
}

function nameOf(request: TokenRequest, tokenizer: TokenizerFiles | null): string {
  const { dataset, data, unit, sequence_length } = request;
  const { validation_fraction, seed } = data;
  const madeFrom = [
    PREPARATION,
    dataset.digest,
    dataset.format,
    tokenizer ?? data.tokenizer,
    data.parse_special_tokens,
    data.chat_template,
    data.template_date,
    data.chat,
    data.packing,
    sequence_length,
    tokenBytes(request),
    ...(validation_fraction > 0 ? [validation_fraction, seed] : []),
    ...(unit === null ? [] : [unit]),
  ];
  return createHash('sha256').update(JSON.stringify(madeFrom)).digest('hex');
}

function tokenBytes({ data, vocab_size }: TokenRequest): 2 | 4 {
  return data.tokenizer === 'bytes' || vocab_size <= NARROW_VOCAB ? 2 : 4;
}

interface BuildInput {
  objects: ObjectStore;
  request: TokenRequest;
  tokenizer: TokenizerFiles | null;
  onProgress: OnProgress;
}

/** Builds an entry of the cache. On a full disk it evicts all unused entries before the next try. */
async function buildEntry(input: BuildInput, entry: string): Promise<void> {
  const { data, cache_dir, attempt } = input.request;
  const made = temporaryPath(entry, attempt);
  try {
    await mkdir(made);
    await buildFiles(input, made);
    await putEntry(made, entry, async (directory) => (await findFiles(pathsIn(directory, data))) !== null);
  } catch (error) {
    await rm(made, { recursive: true, force: true });
    if (codeOf(error) === 'ENOSPC') await evict(cache_dir, 0);
    throw error;
  }
}

/** Builds all files of an entry, with the use mark of its builder, and flushes them to disk. */
async function buildFiles(input: BuildInput, made: string): Promise<void> {
  const { objects, request, onProgress } = input;
  const { data, dataset, sequence_length, attempt } = request;
  const paths = pathsIn(made, data);
  const files = newFiles(request, { training: paths.training, validation: join(made, 'validation') });
  try {
    const source = sourceOf(input, join(made, 'scratch'));
    const counts = new DataCounts(sequence_length, data.packing);
    for await (const piece of source(verifiedBytes(objects, request, onProgress))) {
      counts.add(piece);
      checkVocab(counts.maxToken, request);
      files.append(piece);
    }
    const summary = { ...counts.end(), ...files.finish() };
    const [foundDocuments, expected] = [
      request.unit === null ? counts.sources : summary.documents,
      numDocuments(request),
    ];
    if (foundDocuments !== expected)
      throw corruptDataset(dataset, `${foundDocuments} documents, but the upload has ${expected}`);
    const found: EntrySummary = { tokens_digest: await digestOf(paths), summary };
    await writeFile(paths.summary, JSON.stringify(found), { flush: true });
    await markUse(made, attempt);
  } finally {
    files.close();
  }
}

function newFiles(request: TokenRequest, paths: { training: string; validation: string }) {
  const { data, dataset, unit, sequence_length } = request;
  const options = {
    ...paths,
    shape: { token_bytes: tokenBytes(request), sequence_length },
    split: { fraction: data.validation_fraction, seed: data.seed },
  };
  if (unit !== null) return new UnitFiles({ ...options, unit, num_units: unitsOf(dataset, unit) });
  return new SequenceFiles({
    ...options,
    num_documents: dataset.num_documents,
    newFile: (writer) => newFile(request, writer),
  });
}

/** Returns the number of documents that the source yields: of preferences, one for each completion. */
function numDocuments({ dataset, unit }: TokenRequest): number {
  return unit === null ? dataset.num_documents : unitsOf(dataset, 'labelled');
}

function sourceOf({ request, tokenizer }: BuildInput, scratch: string) {
  const { dataset, data, unit, num_threads } = request;
  const { chat_template, parse_special_tokens, template_date, chat } = data;
  const setup = {
    tokenizer,
    parse_special_tokens,
    chat_template,
    template_date,
    unit,
    ...(chat && { chat }),
  };
  return tokenSource({ format: dataset.format, ...setup, num_threads, scratch });
}

function newFile(request: TokenRequest, writer: TokenFileWriter): SequenceFile {
  if (request.data.packing === 'fit') return new FitFile(writer, request.sequence_length);
  return new PackedFile(writer, (onSequence) => newPacker(request, onSequence));
}

function newPacker({ dataset, data, sequence_length }: TokenRequest, onSequence: OnSequence): Packer {
  if (data.packing === 'whole') return new WholePacker(sequence_length, onSequence);
  // The remainder of a text is always dropped: the bits of a training depend on it.
  return new SplitPacker(sequence_length, dataset.format !== 'text', onSequence);
}

function checkVocab(maxToken: number, { vocab_size, dataset }: TokenRequest): void {
  if (maxToken < vocab_size) return;
  throw new ZerofleetError(
    'token_out_of_vocab',
    `dataset ${dataset.id} has token ${maxToken}, and the model has a vocabulary of ${vocab_size}; train a model with a ` +
      'larger vocab_size, or use its own tokenizer',
  );
}

/** Reads the summary of complete files; null when one of them is missing. */
async function findFiles(paths: EntryPaths): Promise<EntrySummary | null> {
  const found = await Promise.all(tokenFiles(paths).map(isWhole));
  if (!found.every((whole) => whole)) return null;
  try {
    return JSON.parse(await readFile(paths.summary, 'utf8'));
  } catch {
    return null;
  }
}

function tokenFiles({ training, validation }: EntryPaths): string[] {
  return validation === null ? [training] : [training, validation];
}

async function digestOf(paths: EntryPaths): Promise<string> {
  const hash = createHash('sha256');
  for (const path of tokenFiles(paths)) for await (const chunk of createReadStream(path)) hash.update(chunk);
  return `sha256:${hash.digest('hex')}`;
}

/** Returns whether a token file exists with the length in its header. */
async function isWhole(path: string): Promise<boolean> {
  const file = await open(path).catch(() => null);
  if (!file) return false;
  try {
    // Uses the options form: without a length, Node.js 20.11 reads nothing.
    const { buffer, bytesRead } = await file.read({
      buffer: Buffer.alloc(TOKEN_FILE_HEADER_BYTES),
      position: 0,
    });
    const header = decodeTokenFileHeader(buffer.subarray(0, bytesRead));
    return header !== null && tokenFileLayout(header).end === (await file.stat()).size;
  } finally {
    await file.close();
  }
}
