import { createHash } from 'node:crypto';
import { type ExportFile, type Model, ZerofleetError } from '../../contracts/index.js';
import { ChunkChecksums } from '../../platform/checkpoint/verify.js';
import { CONFIG_FILE } from '../../platform/models/documents.js';
import { modelFileKey, WEIGHTS_FILE } from '../../platform/models/weights.js';
import type { ObjectStore, PutBody, PutOptions } from '../../platform/object-store/common/port.js';
import { requireDocumentSize } from '../contents/documents.js';
import type { InspectedModel } from '../contents/inspect.js';
import { encodeRecord, type ModelRecord, Records } from '../contents/records.js';
import { unreadIn } from '../contents/tokenizer.js';
import { WeightsScan } from '../contents/weights-scan.js';
import type { Inspector } from '../inspection/inspector.js';
import { collectBytes } from './collect-bytes.js';
import { digestOf, type FolderFile, MAX_IGNORED, ModelFolder } from './folder.js';

/** Properties of a model with stored files. */
export type StoredModel = Omit<Model, 'description' | 'id' | 'project' | 'name' | 'created_at'>;

/** Far more than the number of parameters of any model. */
const MAX_FILES = 20_000;

export interface ModelUploadDeps {
  objects: ObjectStore;
  inspector: Inspector;
}

/**
 * One upload: stores the files of a model under its id while they arrive. Files are parsed in threads; the findings about each
 * file are kept as bytes until all files are present.
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
  ) {}

  /**
   *  @param body a tar archive
   * @param limit its maximum size, in bytes
   * @throws ZerofleetError `model_…`, `safetensors_invalid`, `tokenizer_invalid`, `content_too_complex`; ObjectStoreError; errors
   *   of the body. The caller then calls `discard` to remove stored files.
   */
  async receive(body: AsyncIterable<Uint8Array>, limit: number): Promise<StoredModel> {
    const folder = new ModelFolder();
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
    const documents = [...this.documents].map(([name, bytes]) => ({ name, bytes }));
    const records = this.records.all();
    const transfer = [...this.documents.values(), ...records].map(({ buffer }) => buffer);
    const { owner } = this;
    const { weights, model, unused } = await this.deps.inspector.run(
      'finishModel',
      { documents, records },
      { owner, transfer },
    );
    await this.deps.objects.delete(unused.map((name) => modelFileKey(this.id, name)));
    this.files = this.files.filter(({ name }) => !unused.includes(name));
    await this.put(WEIGHTS_FILE, weights);
    return this.describe(model, [...ignored, ...unused].slice(0, MAX_IGNORED));
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
    const sha256 = createHash('sha256');
    const whole = await collectBytes(content, bytes, sha256);
    await this.put(name, whole);
    this.files.push({ name, bytes: whole.length, sha256: sha256.digest('hex') });
    const read = await this.deps.inspector.run(
      'checkDocument',
      { name, bytes: whole },
      { owner: this.owner },
    );
    this.documents.set(name, read.bytes as Uint8Array<ArrayBuffer>);
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
    const { objects, inspector } = this.deps;
    const crc32c = await this.storeChecksummed(name, bytes, content);
    const key = modelFileKey(this.id, name);
    const read = (begin: number, end: number) => objects.get(key, { begin, end });
    const { record } = await inspector.run('readCheckpoint', { name, bytes }, { owner: this.owner, read });
    this.records.add(record);
    this.record({ stored: { file: name, bytes, crc32c }, digests: [] });
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
