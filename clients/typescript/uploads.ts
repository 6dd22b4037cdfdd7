import type {
  Dataset,
  DatasetPatch,
  Estimate,
  JobSpec,
  Model,
  ModelPatch,
  Upload,
  UploadPart,
  UploadRequest,
  UploadUrls,
  UploadUrlsRequest,
} from '../../contracts/types.js';
import { ApiError } from './errors.js';
import { allPages, type ListQuery } from './pages.js';
import { bodyOf, type Http, type Match, matchHeader } from './transport.js';

/** Content of an upload: all of it, or a stream that is read while it is sent. */
export type Content = string | Uint8Array | Blob | ReadableStream<Uint8Array>;

const CONTENT_TYPES: Record<Dataset['format'], string> = {
  text: 'text/plain; charset=utf-8',
  jsonl: 'application/x-ndjson',
  tokens: 'application/octet-stream',
};

/**
 * Request options for raw content. The Fetch standard requires `duplex` for streams; the contract's body types are of
 * JSON.
 */
export function raw(content: Content, type: string) {
  return {
    body: content as never,
    bodySerializer: (body: unknown) => body as NonNullable<RequestInit['body']>,
    headers: { 'content-type': type },
    ...(content instanceof ReadableStream && { duplex: 'half' as const }),
  };
}

type Send = (request: Request) => Promise<Response>;

interface ResumeOptions {
  /** `api`: sends all content through the API, for clients that cannot reach its object store. */
  via?: 'auto' | 'api';
  signal?: AbortSignal;
}

interface PartToSend extends ResumeOptions {
  upload_id: string;
  part_number: number;
}

function base64(bytes: ArrayBuffer): string {
  return btoa(String.fromCharCode(...new Uint8Array(bytes)));
}

/** Resumable uploads of datasets. */
class DatasetUploads {
  constructor(
    private readonly http: Http,
    private readonly send: Send,
  ) {}

  begin(announced: UploadRequest): Promise<Upload> {
    return bodyOf(`upload of ${announced.name}`, this.http.POST('/v1/uploads', { body: announced }));
  }

  get(uploadId: string): Promise<Upload> {
    const params = { path: { upload_id: uploadId } };
    return bodyOf(`upload ${uploadId}`, this.http.GET('/v1/uploads/{upload_id}', { params }));
  }

  /** Sends a part; retried without an answer. */
  async put(
    uploadId: string,
    partNumber: number,
    content: Uint8Array,
    options: { signal?: AbortSignal } = {},
  ): Promise<void> {
    const params = { path: { upload_id: uploadId, part_number: partNumber } };
    await bodyOf(
      `part ${partNumber} of ${uploadId}`,
      this.http.PUT('/v1/uploads/{upload_id}/parts/{part_number}', {
        params,
        ...options,
        ...raw(content, 'application/octet-stream'),
      }),
    );
  }

  /** URLs for sending parts, by default the missing ones. */
  urls(uploadId: string, body: UploadUrlsRequest = {}): Promise<UploadUrls> {
    const params = { path: { upload_id: uploadId } };
    return bodyOf(
      `URLs of ${uploadId}`,
      this.http.POST('/v1/uploads/{upload_id}/part-urls', { params, body }),
    );
  }

  complete(uploadId: string): Promise<Dataset> {
    const params = { path: { upload_id: uploadId } };
    return bodyOf(
      `end of upload ${uploadId}`,
      this.http.POST('/v1/uploads/{upload_id}/complete', { params }),
    );
  }

  /**
   * Sends the missing parts of an upload in order and completes it. @param read returns the bytes [begin, end) of the
   * content
   */
  async resume(
    uploadId: string,
    read: (begin: number, end: number) => Uint8Array | Promise<Uint8Array>,
    { via = 'auto', signal }: ResumeOptions = {},
  ): Promise<Dataset> {
    const { bytes, num_parts, part_bytes, received_parts, dataset_id } = await this.get(uploadId);
    const received = new Set(received_parts);
    const all = Array.from({ length: num_parts }, (_, index) => index + 1);
    const missing = dataset_id === null ? all.filter((part) => !received.has(part)) : [];
    for (const partNumber of missing) {
      const begin = (partNumber - 1) * part_bytes;
      const content = await read(begin, Math.min(begin + part_bytes, bytes));
      await this.sendPart({ upload_id: uploadId, part_number: partNumber, via, signal }, content);
    }
    return this.complete(uploadId);
  }

  /** Sends a part to a presigned URL if there is one; the URL is valid for this content only. */
  private async sendPart({ upload_id, part_number, via, signal }: PartToSend, content: Uint8Array) {
    const throughApi = () => this.put(upload_id, part_number, content, { signal });
    if (via === 'api') return throughApi();
    const body = content as Uint8Array<ArrayBuffer>;
    const sha256 = [base64(await crypto.subtle.digest('SHA-256', body))];
    const { parts } = await this.urls(upload_id, { part_numbers: [part_number], sha256 });
    const [{ url, headers }] = parts as [UploadPart];
    if (url.startsWith('/')) return throughApi();
    // The API key must only be sent to the API.
    const request = new Request(url, { method: 'PUT', body, headers, ...(signal && { signal }) });
    const response = await this.send(request);
    await response.body?.cancel();
    if (!response.ok) throw new ApiError(response.status, null, `part ${part_number} of ${upload_id}`);
  }

  async delete(uploadId: string): Promise<void> {
    const params = { path: { upload_id: uploadId } };
    await bodyOf(`delete ${uploadId}`, this.http.DELETE('/v1/uploads/{upload_id}', { params }));
  }
}

export class Datasets {
  readonly uploads: DatasetUploads;

  constructor(
    private readonly http: Http,
    send: Send,
  ) {
    this.uploads = new DatasetUploads(http, send);
  }

  /** Uploads a dataset. It exists when this resolves; a broken upload leaves nothing and is not retried. */
  create(name: string, content: Content, format: Dataset['format'] = 'text'): Promise<Dataset> {
    const params = { query: { name, format } };
    return bodyOf(
      `upload of dataset ${name}`,
      this.http.POST('/v1/datasets', { params, ...raw(content, CONTENT_TYPES[format]) }),
    );
  }

  /**
   * Creates a dataset from an object `s3://bucket/key` in an allowed bucket, or from a file of the Hugging Face Hub,
   * `hf://datasets/owner/name@revision/path`. It is copied: later changes have no effect.
   */
  register(name: string, uri: string, format: Dataset['format'] = 'text'): Promise<Dataset> {
    const params = { query: { name, format, uri } };
    return bodyOf(`copy of ${uri}`, this.http.POST('/v1/datasets', { params }));
  }

  get(datasetId: string): Promise<Dataset> {
    const params = { path: { dataset_id: datasetId } };
    return bodyOf(`dataset ${datasetId}`, this.http.GET('/v1/datasets/{dataset_id}', { params }));
  }

  /** Datasets, newest first, optionally filtered by name. */
  list(query: ListQuery<'listDatasets'> = {}): AsyncIterable<Dataset> {
    return allPages((after) =>
      bodyOf('list of datasets', this.http.GET('/v1/datasets', { params: { query: { ...query, after } } })),
    );
  }

  /** Content of a dataset, from a byte offset on. */
  async content(
    datasetId: string,
    { from = 0, signal }: { from?: number; signal?: AbortSignal } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const body = await bodyOf(
      `content of ${datasetId}`,
      this.http.GET('/v1/datasets/{dataset_id}/content', {
        params: { path: { dataset_id: datasetId } },
        headers: from > 0 ? { Range: `bytes=${from}-` } : {},
        parseAs: 'stream',
        ...(signal && { signal }),
      }),
    );
    if (body === null) throw new Error(`${datasetId}: an answer without a body`);
    return body as unknown as ReadableStream<Uint8Array>;
  }

  /** Changes the given fields; with `ifMatch`, the ETag of an answer, only if the record is unchanged. */
  update(datasetId: string, body: DatasetPatch, match: Match = {}): Promise<Dataset> {
    const params = { path: { dataset_id: datasetId }, ...matchHeader(match) };
    return bodyOf(`change of ${datasetId}`, this.http.PATCH('/v1/datasets/{dataset_id}', { params, body }));
  }

  async delete(datasetId: string): Promise<void> {
    const params = { path: { dataset_id: datasetId } };
    await bodyOf(`delete ${datasetId}`, this.http.DELETE('/v1/datasets/{dataset_id}', { params }));
  }
}

export class Models {
  constructor(private readonly http: Http) {}

  /**
   * Uploads the tar archive of a Hugging Face model folder or of a DeepSpeed universal checkpoint; with `base`, of a
   * PEFT folder.
   * @param options base: the uploaded model that the adapter was trained over
   */
  create(name: string, archive: Content, options: { base?: string } = {}): Promise<Model> {
    const params = { query: { name, ...options } };
    return bodyOf(
      `upload of model ${name}`,
      this.http.POST('/v1/models', { params, ...raw(archive, 'application/x-tar') }),
    );
  }

  /**
   * Creates a model from a folder `s3://bucket/folder` in an allowed bucket, or from a repository of the Hugging Face
   * Hub, `hf://owner/name@revision`. It is copied: later changes have no effect.
   */
  register(name: string, uri: string, options: { base?: string } = {}): Promise<Model> {
    const params = { query: { name, uri, ...options } };
    return bodyOf(`copy of ${uri}`, this.http.POST('/v1/models', { params }));
  }

  get(modelId: string): Promise<Model> {
    return bodyOf(
      `model ${modelId}`,
      this.http.GET('/v1/models/{model_id}', { params: { path: { model_id: modelId } } }),
    );
  }

  /** Models, newest first, optionally filtered by name. */
  list(query: ListQuery<'listModels'> = {}): AsyncIterable<Model> {
    return allPages((after) =>
      bodyOf('list of models', this.http.GET('/v1/models', { params: { query: { ...query, after } } })),
    );
  }

  /** Changes the given fields; with `ifMatch`, the ETag of an answer, only if the record is unchanged. */
  update(modelId: string, body: ModelPatch, match: Match = {}): Promise<Model> {
    const params = { path: { model_id: modelId }, ...matchHeader(match) };
    return bodyOf(`change of ${modelId}`, this.http.PATCH('/v1/models/{model_id}', { params, body }));
  }

  async delete(modelId: string): Promise<void> {
    const params = { path: { model_id: modelId } };
    await bodyOf(`delete ${modelId}`, this.http.DELETE('/v1/models/{model_id}', { params }));
  }
}

/** Memory per rank of a job, by part, for each number of ranks. */
export function estimate(
  http: Http,
  spec: JobSpec,
  worldSizes?: number[],
  device?: Estimate['device'],
): Promise<Estimate> {
  const body = { spec, ...(worldSizes && { world_sizes: worldSizes }), ...(device && { device }) };
  return bodyOf('estimate', http.POST('/v1/estimate', { body }));
}
