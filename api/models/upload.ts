import { createHash } from 'node:crypto';
import type { ExportFile, Model } from '../../contracts/index.js';
import { ZerofleetError } from '../../contracts/index.js';
import { ChunkChecksums } from '../../platform/checkpoint/verify.js';
import {
  encodeWeights,
  modelFileKey,
  WEIGHTS_FILE,
  type WeightDtype,
  type WeightsFile,
} from '../../platform/models/weights.js';
import type { ObjectStore } from '../../platform/object-store/port.js';
import { objectSource } from '../../platform/torch-file/byte-source.js';
import { readTorchFile } from '../../platform/torch-file/read.js';
import { type CheckedModel, ModelContents } from './contents.js';
import { MAX_DOCUMENT_BYTES } from './documents.js';
import { digestOf, type FolderFile, MAX_IGNORED, ModelFolder } from './folder.js';
import { unreadIn } from './tokenizer.js';
import { WeightsScan } from './weights-scan.js';

/** What is known of a model once its files are stored. */
export type StoredModel = Omit<Model, 'id' | 'project' | 'name' | 'created_at'>;

/** Of a tokenizer alone there is no shape. */
type CheckedFiles = Omit<CheckedModel, 'shape'> & { shape: CheckedModel['shape'] | null };

/** Files of a checkpoint that are kept without a tensor in them. */
const KEPT = /^zero\//;

const DTYPE_NAMES: Readonly<Record<WeightDtype, Model['dtypes'][number]>> = {
  F32: 'fp32',
  BF16: 'bf16',
  F16: 'fp16',
};

/** One upload: stores the files of a model under its id while they arrive. */
export class ModelUpload {
  private readonly contents = new ModelContents();
  private files: ExportFile[] = [];
  private readonly checksums = new Map<string, string[]>();
  private readonly keys: string[] = [];

  constructor(
    private readonly objects: ObjectStore,
    private readonly id: string,
  ) {}

  /**
   * @param body a tar archive
   * @param limit its largest size, in bytes
   * @throws ZerofleetError `model_…`, `safetensors_invalid`, `tokenizer_invalid`; ObjectStoreError; what the body throws. `discard` then removes
   * what was stored until then.
   */
  async receive(body: AsyncIterable<Uint8Array>, limit: number): Promise<StoredModel> {
    const folder = new ModelFolder();
    return this.store(folder.files(body, limit), folder.ignored);
  }

  /**
   * Stores files of a folder that come one after the other.
   * @param ignored names of what is left out, which may grow while the files come
   * @throws as `receive`
   */
  async store(files: AsyncIterable<FolderFile>, ignored: readonly string[]): Promise<StoredModel> {
    for await (const file of files) {
      if (file.kind === 'weights') await this.storeWeights(file);
      else if (file.kind === 'checkpoint') await this.storeCheckpoint(file);
      else await this.storeDocument(file);
    }
    const checked = this.contents.finish();
    const unused = await this.dropUnused(checked);
    const weights = encodeWeights(this.weightsFiles(checked), checked.optimizer?.steps ?? null);
    await this.put(WEIGHTS_FILE, weights);
    return this.describe(checked, [...ignored, ...unused].slice(0, MAX_IGNORED));
  }

  /**
   * Stores a `tokenizer.json` that comes without a model.
   * @throws as `receive`
   */
  async storeTokenizer(file: FolderFile): Promise<StoredModel> {
    await this.storeDocument(file);
    const tokenizer = this.contents.finishTokenizer();
    return this.describe({ config: {}, shape: null, tensors: new Map(), optimizer: null, tokenizer }, []);
  }

  /** Removes everything that was stored. */
  async discard(): Promise<void> {
    await this.objects.delete(this.keys);
  }

  private async storeDocument({ name, bytes, content }: FolderFile): Promise<void> {
    if (bytes > MAX_DOCUMENT_BYTES)
      throw new ZerofleetError('model_too_large', `${name} may have at most ${MAX_DOCUMENT_BYTES} bytes`);
    const pieces: Uint8Array[] = [];
    for await (const piece of content) pieces.push(piece);
    const whole = Buffer.concat(pieces);
    this.contents.document(name, whole);
    await this.put(name, whole);
    this.files.push({ name, bytes: whole.length, sha256: createHash('sha256').update(whole).digest('hex') });
  }

  private async storeWeights({ name, bytes, content }: FolderFile): Promise<void> {
    const scan = new WeightsScan({ name, bytes }, (header) => this.contents.header(name, header));
    await this.storeChecksummed(name, bytes, scan.pieces(content));
    this.contents.complete(scan.result(name));
  }

  /** The directory of a PyTorch file is at its end, so the file is stored first and checked then, by a second reading. */
  private async storeCheckpoint({ name, bytes, content }: FolderFile): Promise<void> {
    await this.storeChecksummed(name, bytes, content);
    const source = objectSource(this.objects, modelFileKey(this.id, name), name, bytes);
    await this.contents.checkpointFile(name, () => readTorchFile(source));
  }

  /** Removes files of ranks out of which no tensor is taken. */
  private async dropUnused({ tensors }: CheckedModel): Promise<string[]> {
    const isUnused = (name: string) => this.checksums.has(name) && !tensors.has(name) && !KEPT.test(name);
    const unused = this.files.map(({ name }) => name).filter(isUnused);
    await this.objects.delete(unused.map((name) => modelFileKey(this.id, name)));
    this.files = this.files.filter(({ name }) => !isUnused(name));
    return unused;
  }

  private async storeChecksummed(
    name: string,
    bytes: number,
    content: AsyncIterable<Uint8Array>,
  ): Promise<void> {
    const sha256 = createHash('sha256');
    const chunks = new ChunkChecksums();
    const passOn = async function* () {
      for await (const piece of content) {
        sha256.update(piece);
        chunks.add(piece);
        yield piece;
      }
    };
    await this.put(name, passOn());
    this.files.push({ name, bytes, sha256: sha256.digest('hex') });
    this.checksums.set(name, chunks.finish());
  }

  private async put(name: string, body: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    const key = modelFileKey(this.id, name);
    await this.objects.put(key, body);
    this.keys.push(key);
  }

  private weightsFiles({ tensors }: CheckedModel): WeightsFile[] {
    return this.files.flatMap(({ name, bytes }) => {
      const crc32c = this.checksums.get(name);
      if (crc32c === undefined) return [];
      return [{ file: name, bytes, crc32c, tensors: tensors.get(name) ?? [] }];
    });
  }

  private describe(checked: CheckedFiles, ignored: readonly string[]): StoredModel {
    const { config, shape, tensors, tokenizer, optimizer } = checked;
    const files = [...this.files].sort((a, b) => (a.name < b.name ? -1 : 1));
    const dtypes = new Set([...tensors.values()].flat().map(({ dtype }) => DTYPE_NAMES[dtype]));
    return {
      model_type: shape?.model_type ?? null,
      num_parameters: (shape?.params ?? []).reduce((sum, { numel }) => sum + numel, 0),
      dtypes: [...dtypes].sort(),
      has_tokenizer: tokenizer !== null,
      ...unreadIn(files.map(({ name }) => name)),
      tokenizer,
      ...(optimizer === null
        ? {}
        : {
            optimizer_steps: optimizer.steps,
            optimizer_states: optimizer.states,
            frozen_parameters: optimizer.frozen,
          }),
      bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
      digest: digestOf(files),
      files,
      ignored_files: [...ignored],
      config,
    };
  }
}
