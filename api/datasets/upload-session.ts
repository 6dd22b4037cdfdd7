/**
 * Resumable uploads: each part is a separate object until all have arrived; then they are read in order
 * and checked like a single body. The object store holds the whole state of an upload:
 *
 *     uploads/<project>/<upload>/upload.json        announced properties
 *     uploads/<project>/<upload>/parts/<number>     a complete part
 *     uploads/<project>/<upload>/dataset.json       how it ended: the resulting dataset, or null; written once
 *
 * Garbage collection removes uploads that received nothing for a day.
 */
import {
  type Dataset,
  datasetKey,
  type Upload,
  type UploadPart,
  type UploadRequest,
  ZerofleetError,
} from '../../contracts/index.js';
import { uploadDocumentKey, uploadKey, uploadOutcomeKey } from '../../control/recovery/uploads.js';
import { removeFolder } from '../../formats/checkpoint/remove-folder.js';
import { ObjectStoreError } from '../../platform/object-store/common/errors.js';
import { getIfExists } from '../../platform/object-store/common/get-if-exists.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { newUlid } from '../../platform/random.js';
import { type Static, Type } from '../../platform/schema.js';
import { parser, putDocument, type UploadSpace } from '../../state/index.js';
import { found, notFound } from '../access/found.js';
import type { ApiLimits } from '../limits.js';
import { tooLarge } from './upload.js';

const Announced = Type.Object({
  id: Type.String(),
  project: Type.String(),
  name: Type.String(),
  format: Type.Unsafe<Dataset['format']>({ type: 'string', enum: ['text', 'jsonl', 'tokens'] }),
  bytes: Type.Integer({ minimum: 1 }),
  digest: Type.Union([Type.String(), Type.Null()]),
  part_bytes: Type.Integer({ minimum: 1 }),
  created_at: Type.String(),
});
type Announced = Static<typeof Announced>;
const parse = parser(Announced);

const Result = Type.Unsafe<Dataset>({ type: 'object', required: ['id', 'digest', 'bytes'] });
const parseOutcome = parser(Type.Object({ dataset: Type.Union([Result, Type.Null()]) }));

interface PartUrlsOptions {
  seconds: number;
  via: 'auto' | 'api';
  most: number;
  /** Digest of each requested part, base64. */
  sha256: readonly string[] | null;
}

export class UploadSession {
  private constructor(
    private readonly objects: ObjectStore,
    readonly announced: Announced,
  ) {}

  /**
   * Its storage counts before its first byte is written.
   * @throws ZerofleetError `dataset_too_large`, `storage_quota_exceeded`
   */
  static async create(
    { objects, store }: { objects: ObjectStore; store: Pick<UploadSpace, 'reserveUpload' | 'releaseUpload'> },
    { name, format = 'text', bytes, digest = null }: UploadRequest,
    { project, limits }: { project: string; limits: Pick<ApiLimits, 'dataset_bytes' | 'part_bytes'> },
  ): Promise<UploadSession> {
    if (bytes > limits.dataset_bytes) throw tooLarge(limits.dataset_bytes);
    const createdAt = new Date().toISOString();
    const id = `upl_${newUlid()}`;
    const session = new UploadSession(objects, {
      id,
      project,
      name,
      format,
      bytes,
      digest,
      part_bytes: limits.part_bytes,
      created_at: createdAt,
    });
    await store.reserveUpload(project, id, bytes);
    try {
      await putDocument(objects, session.documentKey, session.announced);
    } catch (error) {
      // The write may have succeeded anyway. Its storage is then not counted until garbage collection, a day later, or
      // until completion.
      await store.releaseUpload(project, id).catch(() => undefined);
      throw error;
    }
    return session;
  }

  /**
   * @throws ZerofleetError `upload_not_found`, also for an upload of another project: the project is part of the key
   */
  static async open(objects: ObjectStore, project: string, id: string): Promise<UploadSession> {
    const document = found(await getIfExists(objects, uploadDocumentKey(project, id)), 'upload', id);
    return new UploadSession(objects, parse(document));
  }

  get numParts(): number {
    return Math.ceil(this.announced.bytes / this.announced.part_bytes);
  }

  /** Numbers of the received parts, ascending. */
  async received(): Promise<number[]> {
    const found: number[] = [];
    for await (const { key, bytes } of this.objects.list(this.partsPrefix)) {
      const part = Number(key.slice(this.partsPrefix.length));
      if (bytes === this.bytesOf(part)) found.push(part);
    }
    return found;
  }

  /** @param datasetId the recorded dataset; null for none */
  async describe(datasetId: string | null): Promise<Upload> {
    return {
      ...this.announced,
      num_parts: this.numParts,
      received_parts: datasetId === null ? await this.received() : [],
      dataset_id: datasetId,
    };
  }

  /**
   * How it ended: with the winning dataset, which may not be recorded yet or already be deleted, or cancelled. Null
   * before.
   */
  async end(): Promise<Dataset | 'cancelled' | null> {
    const outcome = await getIfExists(this.objects, this.outcomeKey);
    return outcome && (parseOutcome(outcome).dataset ?? 'cancelled');
  }

  /** The winning dataset, or null before completion. @throws ZerofleetError `upload_not_found` if it was cancelled */
  async outcome(): Promise<Dataset | null> {
    const end = await this.end();
    if (end === 'cancelled') throw notFound('upload', this.announced.id);
    return end;
  }

  /**
   * Sets the upload's outcome to a dataset whose content is stored. If something else won, the content is removed.
   * @returns the winning dataset, the same for all concurrent callers
   * @throws ZerofleetError `upload_not_found` if the upload was cancelled
   */
  async decide(dataset: Dataset): Promise<Dataset> {
    const decided = await this.settle(dataset);
    // A write that is retried after a lost answer finds its own result.
    if (decided?.id !== dataset.id) await this.objects.delete([datasetKey(dataset.id)]);
    return found(decided, 'upload', this.announced.id);
  }

  /** Ends the upload without a dataset, unless it has one. Idempotent. @returns the dataset that won; null for none */
  async cancel(store: Pick<UploadSpace, 'releaseUpload'>): Promise<Dataset | null> {
    const dataset = await this.settle(null);
    if (dataset !== null) return dataset;
    await this.removeParts();
    await store.releaseUpload(this.announced.project, this.announced.id);
    return null;
  }

  /** Writes the outcome unless there is one. @returns the outcome that won */
  private async settle(dataset: Dataset | null): Promise<Dataset | null> {
    try {
      await putDocument(this.objects, this.outcomeKey, { dataset }, { createOnly: true });
      return dataset;
    } catch (error) {
      if (!(error instanceof ObjectStoreError && error.code === 'precondition_failed')) throw error;
    }
    return parseOutcome(await this.objects.get(this.outcomeKey)).dataset;
  }

  /** @throws ZerofleetError `upload_part_invalid`; errors of the body. Nothing is stored then */
  async put(part: number, body: AsyncIterable<Uint8Array>): Promise<void> {
    this.checkNumber(part);
    await this.objects.put(this.partKey(part), exactly(body, this.bytesOf(part), part));
  }

  /**
   * URLs for sending parts; a path of this API if the store has no pre-signed URLs.
   * @param wanted part numbers; null selects the first `most` missing parts
   * @throws ZerofleetError `upload_part_invalid`
   */
  async partUrls(
    wanted: readonly number[] | null,
    { seconds, via, most, sha256 }: PartUrlsOptions,
  ): Promise<{ is_signed: boolean; parts: UploadPart[] }> {
    if (sha256 !== null && sha256.length !== wanted?.length)
      throw new ZerofleetError(
        'upload_part_invalid',
        `sha256 has ${sha256.length} entries: give one for each of the part_numbers`,
      );
    const parts: UploadPart[] = [];
    let isSigned = via === 'auto';
    for (const [index, part] of (wanted ?? (await this.missing(most))).entries()) {
      this.checkNumber(part);
      const terms = { bytes: this.bytesOf(part), seconds, sha256: sha256?.[index] ?? null };
      const signed = isSigned ? await this.objects.uploadUrl(this.partKey(part), terms) : null;
      isSigned = signed !== null;
      const address = signed ?? { url: `/v1/uploads/${this.announced.id}/parts/${part}`, headers: {} };
      parts.push({ part_number: part, bytes: terms.bytes, ...address });
    }
    return { is_signed: isSigned, parts };
  }

  private async missing(most: number): Promise<number[]> {
    const received = new Set(await this.received());
    const missing: number[] = [];
    for (let part = 1; part <= this.numParts && missing.length < most; part += 1) {
      if (!received.has(part)) missing.push(part);
    }
    return missing;
  }

  private checkNumber(part: number): void {
    if (part > this.numParts)
      throw new ZerofleetError('upload_part_invalid', `the upload has ${this.numParts} parts, not ${part}`);
  }

  /** True if the upload was deleted after this session was opened. */
  async isGone(): Promise<boolean> {
    return (await this.objects.head(this.documentKey)) === null;
  }

  /** Content of all parts in order. @throws ZerofleetError `upload_incomplete`, before anything is read */
  async content(): Promise<AsyncIterable<Uint8Array>> {
    const received = await this.received();
    const missing = Array.from({ length: this.numParts }, (_, index) => index + 1).find(
      (part, index) => received[index] !== part,
    );
    if (missing !== undefined)
      throw new ZerofleetError(
        'upload_incomplete',
        `part ${missing} of ${this.numParts} is missing, ${received.length} have arrived: send the others`,
      );
    return this.pieces();
  }

  async removeParts(): Promise<void> {
    await removeFolder(this.objects, this.partsPrefix.slice(0, -1));
  }

  async remove(store: Pick<UploadSpace, 'releaseUpload'>): Promise<void> {
    await this.objects.delete([this.documentKey]);
    await removeFolder(this.objects, this.folder);
    // If the server dies here, garbage collection removes the parts.
    await store.releaseUpload(this.announced.project, this.announced.id);
  }

  private async *pieces(): AsyncGenerator<Uint8Array> {
    for (let part = 1; part <= this.numParts; part += 1) yield* await this.objects.stream(this.partKey(part));
  }

  private bytesOf(part: number): number {
    const { bytes, part_bytes } = this.announced;
    return Math.min(part_bytes, bytes - (part - 1) * part_bytes);
  }

  /** Prefix of the keys of its parts. */
  get partsPrefix(): string {
    return `${this.folder}/parts/`;
  }

  private get folder(): string {
    return uploadKey(this.announced.project, this.announced.id);
  }

  private get documentKey(): string {
    return uploadDocumentKey(this.announced.project, this.announced.id);
  }

  private get outcomeKey(): string {
    return uploadOutcomeKey(this.announced.project, this.announced.id);
  }

  private partKey(part: number): string {
    return this.partsPrefix + String(part).padStart(6, '0');
  }
}

async function* exactly(body: AsyncIterable<Uint8Array>, wanted: number, part: number) {
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > wanted) break;
    yield piece;
  }
  if (bytes !== wanted)
    throw new ZerofleetError(
      'upload_part_invalid',
      `part ${part} has ${wanted} bytes, and ${bytes > wanted ? 'more' : `only ${bytes}`} came`,
    );
}
