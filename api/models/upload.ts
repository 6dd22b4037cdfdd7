import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { type ExportFile, type Model, ZerofleetError } from '../../contracts/index.js';
import { ChunkChecksums } from '../../formats/checkpoint/verify.js';
import {
  ADAPTER_CONFIG_FILE,
  CONFIG_FILE,
  TOKENIZER_FILES,
  tokenizerFileIn,
} from '../../formats/models/documents.js';
import { modelFileKey, WEIGHTS_FILE } from '../../formats/models/weights.js';
import type { ObjectStore, PutBody, PutOptions } from '../../platform/object-store/common/port.js';
import { missing } from '../contents/contents.js';
import { requireDocumentSize } from '../contents/documents.js';
import type { InspectedModel } from '../contents/inspect.js';
import { encodeRecord, type ModelRecord, Records } from '../contents/records.js';
import { unreadIn } from '../contents/tokenizer.js';
import { WeightsScan } from '../contents/weights-scan.js';
import type { Inspector } from '../inspection/inspector.js';
import { collectBytes } from './collect-bytes.js';
import {
  ADAPTER_NAMES,
  digestOf,
  type FolderFile,
  type FolderNames,
  MAX_IGNORED,
  MODEL_NAMES,
  ModelFolder,
} from './folder.js';

/** Properties of a model with stored files. */
export type StoredModel = Omit<Model, 'description' | 'id' | 'project' | 'name' | 'base' | 'created_at'>;

/** Model under an adapter. */
export type BaseModel = Pick<Model, 'id' | 'files'>;

/** Returns the names of the files of a folder. @param base null for a model of its own */
export function namesOf(base: BaseModel | null): FolderNames {
  return base === null ? MODEL_NAMES : ADAPTER_NAMES;
}

/** Far more than the number of parameters of any model. */
const MAX_FILES = 20_000;

export interface ModelUploadDeps {
  objects: ObjectStore;
  inspector: Inspector;
}

/**
 * One upload: stores the files of a model under its id while they arrive. Files are parsed in threads; the findings
 * about each file are kept as bytes until all files are present.
 */
export class ModelUpload {
  /** Files that are read whole, by name. */
  private readonly documents = new Map<string, Uint8Array<ArrayBuffer>>();
  private readonly records = new Records();
  private files: ExportFile[] = [];
  private readonly keys: string[] = [];

  constructor(
    private readonly deps: ModelUploadDeps,
    private readonly id: string,
    /** Project of the upload. */
    private readonly owner: string,
    /** Model that the uploaded adapter is over; null for a model of its own. */
    private readonly base: BaseModel | null,
  ) {}

  /**
   *  @param body a tar archive
   * @param limit its maximum size, in bytes
   * @throws ZerofleetError `model_…`, `safetensors_invalid`, `tokenizer_invalid`, `content_too_complex`;
   *   ObjectStoreError; errors of the body. The caller then calls `discard` to remove stored files.
   */
  async receive(body: AsyncIterable<Uint8Array>, limit: number): Promise<StoredModel> {
    const folder = new ModelFolder(namesOf(this.base));
    return this.store(folder.files(body, limit), folder.ignored);
  }

  /**
   * Stores the files of a folder in sequence.
   * @param ignored names of ignored files; the list may grow while files arrive
   * @throws as `receive`
   */
  async store(files: AsyncIterable<FolderFile>, ignored: readonly string[]): Promise<StoredModel> {
    for await (const file of files) {
      if (this.files.length === MAX_FILES)
        throw new ZerofleetError('model_too_large', `a model may have at most ${MAX_FILES} files`);
      if (file.kind === 'weights') await this.storeWeights(file);
      else if (file.kind === 'checkpoint') await this.storeCheckpoint(file);
      else await this.storeDocument(file);
    }
    if (this.base !== null) await this.storeDocumentsOf(this.base);
    else if (!this.documents.has(CONFIG_FILE) && ignored.some((name) => name.endsWith(ADAPTER_CONFIG_FILE)))
      throw withoutBase();
    const documents = [...this.documents].map(([name, bytes]) => ({ name, bytes }));
    const records = this.records.all();
    const transfer = [...this.documents.values(), ...records].map(({ buffer }) => buffer);
    const { owner } = this;
    const { weights, model, made, unused } = await this.deps.inspector.run(
      'finishModel',
      { documents, records },
      { owner, transferOf: () => transfer, read: (begin, end, file) => this.read(begin, end, file) },
    );
    await this.deps.objects.delete(unused.map((name) => modelFileKey(this.id, name)));
    this.files = this.files.filter(({ name }) => !unused.includes(name));
    for (const { name, bytes } of made) await this.putDocument(name, bytes);
    await this.put(WEIGHTS_FILE, weights);
    return this.describe(model, [...ignored, ...unused].slice(0, MAX_IGNORED));
  }

  /** Copies documents of the base that the adapter lacks. Files of two tokenizers are not mixed. */
  private async storeDocumentsOf(base: BaseModel): Promise<void> {
    if (!this.documents.has(ADAPTER_CONFIG_FILE)) throw missing(ADAPTER_CONFIG_FILE);
    const own = tokenizerFileIn([...this.documents.keys()]) ? TOKENIZER_FILES : [...this.documents.keys()];
    const wanted = new Set<string>([CONFIG_FILE, ...ADAPTER_NAMES.documents]);
    for (const name of own) wanted.delete(name);
    for (const { name, bytes } of base.files.filter((file) => wanted.has(file.name))) {
      const content = [await this.deps.objects.get(modelFileKey(base.id, name))];
      await this.storeDocument({ name, kind: 'document', bytes, content: Readable.from(content) });
    }
  }

  /** Stores a `tokenizer.json` without a model. @throws as `receive` */
  async storeTokenizer(file: FolderFile): Promise<StoredModel> {
    await this.storeDocument(file);
    const bytes = this.documents.get(file.name) as Uint8Array<ArrayBuffer>;
    const tokenizer = await this.deps.inspector.run('readTokenizer', { bytes }, { owner: this.owner });
    const none = { model_type: null, num_parameters: 0, dtypes: [], config: {} };
    return this.describe({ ...none, has_tokenizer: true, tokenizer }, []);
  }

  /** Removes everything that was stored. */
  async discard(): Promise<void> {
    await this.deps.objects.delete(this.keys);
  }

  /** Stored first: the thread that parses it takes over its bytes. */
  private async storeDocument({ name, bytes, content }: FolderFile): Promise<void> {
    requireDocumentSize(name, bytes);
    const whole = await collectBytes(content, bytes);
    await this.putDocument(name, whole);
    const read = await this.deps.inspector.run(
      'checkDocument',
      { name, bytes: whole },
      { owner: this.owner },
    );
    this.documents.set(name, read.bytes as Uint8Array<ArrayBuffer>);
  }

  private async putDocument(name: string, bytes: Uint8Array): Promise<void> {
    await this.put(name, bytes);
    this.files.push({ name, bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') });
  }

  private async storeWeights({ name, bytes, content }: FolderFile): Promise<void> {
    const scan = new WeightsScan({ name, bytes }, async (start) => {
      const config = this.documents.get(CONFIG_FILE);
      const { record, watched } = await this.deps.inspector.run(
        'readHeader',
        // A copy, because the next file needs it too.
        { file: name, file_bytes: bytes, start, config: config === undefined ? null : { bytes: config } },
        { owner: this.owner },
      );
      this.records.add(record);
      return watched;
    });
    const crc32c = await this.storeChecksummed(name, bytes, scan.pieces(content));
    this.record({ stored: { file: name, bytes, crc32c }, digests: scan.digests() });
  }

  /** The directory of a PyTorch file is at its end, so the file is stored first and then checked by a second read. */
  private async storeCheckpoint({ name, bytes, content }: FolderFile): Promise<void> {
    const { owner } = this;
    const crc32c = await this.storeChecksummed(name, bytes, content);
    const read = (begin: number, end: number) => this.read(begin, end, name);
    const { record } = await this.deps.inspector.run('readCheckpoint', { name, bytes }, { owner, read });
    this.records.add(record);
    this.record({ stored: { file: name, bytes, crc32c }, digests: [] });
  }

  /** Reads bytes of a stored file. */
  private read(begin: number, end: number, name = ''): Promise<Buffer> {
    return this.deps.objects.get(modelFileKey(this.id, name), { begin, end });
  }

  /** @returns a checksum of each chunk */
  private async storeChecksummed(
    name: string,
    bytes: number,
    content: AsyncIterable<Uint8Array>,
  ): Promise<string> {
    const sha256 = createHash('sha256');
    const chunks = new ChunkChecksums();
    const passOn = async function* () {
      for await (const piece of content) {
        sha256.update(piece);
        chunks.add(piece);
        yield piece;
      }
    };
    await this.put(name, passOn(), { bytes });
    this.files.push({ name, bytes, sha256: sha256.digest('hex') });
    return chunks.finish();
  }

  private record(record: ModelRecord): void {
    this.records.add(encodeRecord(record));
  }

  private async put(name: string, body: PutBody, options?: PutOptions): Promise<void> {
    const key = modelFileKey(this.id, name);
    await this.deps.objects.put(key, body, options);
    this.keys.push(key);
  }

  private describe(model: InspectedModel, ignored: readonly string[]): StoredModel {
    const files = [...this.files].sort((a, b) => (a.name < b.name ? -1 : 1));
    return {
      ...model,
      ...unreadIn(files.map(({ name }) => name)),
      bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
      digest: digestOf(files),
      files,
      ignored_files: [...ignored],
    };
  }
}

function withoutBase(): ZerofleetError {
  return new ZerofleetError(
    'model_file_missing',
    'these are the files of an adapter; upload the model that it was trained over, and name it with base=mdl_…',
    { details: { file: CONFIG_FILE } },
  );
}
