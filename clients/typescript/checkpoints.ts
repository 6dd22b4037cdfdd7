import type {
  Checkpoint,
  CheckpointExport,
  CheckpointTensor,
  CheckpointVerdict,
  Download,
  DownloadFile,
  DownloadRequest,
  ExportRequest,
  TensorEdit,
  TensorState,
} from '../../contracts/types.js';
import { openFile } from './downloads.js';
import { allPages, type ListQuery } from './pages.js';
import { bodyOf, type Http } from './transport.js';
import { type Content, raw } from './uploads.js';

export class Checkpoints {
  constructor(
    private readonly http: Http,
    private readonly send: (request: Request) => Promise<Response>,
  ) {}

  /** Checkpoints of all jobs, newest first. */
  list(query: ListQuery<'listCheckpoints'> = {}): AsyncIterable<Checkpoint> {
    return allPages((after) =>
      bodyOf(
        'list of checkpoints',
        this.http.GET('/v1/checkpoints', { params: { query: { ...query, after } } }),
      ),
    );
  }

  get(checkpoint_id: string): Promise<Checkpoint> {
    const params = { path: { checkpoint_id } };
    return bodyOf(
      `checkpoint ${checkpoint_id}`,
      this.http.GET('/v1/checkpoints/{checkpoint_id}', { params }),
    );
  }

  /** Protects a checkpoint from retention, or ends the protection. */
  pin(checkpoint_id: string, pinned = true): Promise<Checkpoint> {
    const params = { path: { checkpoint_id } };
    return bodyOf(
      `pin ${checkpoint_id}`,
      this.http.PATCH('/v1/checkpoints/{checkpoint_id}', { params, body: { pinned } }),
    );
  }

  async delete(checkpoint_id: string): Promise<void> {
    const params = { path: { checkpoint_id } };
    await bodyOf(`delete ${checkpoint_id}`, this.http.DELETE('/v1/checkpoints/{checkpoint_id}', { params }));
  }

  /** Reads the whole checkpoint and reports damaged objects. */
  verify(checkpoint_id: string): Promise<CheckpointVerdict> {
    const params = { path: { checkpoint_id } };
    return bodyOf(
      `verify ${checkpoint_id}`,
      this.http.POST('/v1/checkpoints/{checkpoint_id}/verify', { params }),
    );
  }

  /** Download URLs of the files of a checkpoint, or with `format` of one of its exports. */
  downloadUrls(checkpoint_id: string, body: DownloadRequest = {}): Promise<Download> {
    const params = { path: { checkpoint_id } };
    return bodyOf(
      `files of ${checkpoint_id}`,
      this.http.POST('/v1/checkpoints/{checkpoint_id}/download-urls', { params, body }),
    );
  }

  /**
   * Bytes of a listed file, from an offset on.
   * @throws ApiError, ConnectionError when it cannot be opened; a connection that breaks later is an error of the
   *   stream
   */
  openFile(
    file: DownloadFile,
    options: { from?: number; signal?: AbortSignal } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    return openFile(this.http, this.send, file, options);
  }

  /** Parameters and their states, in the order of the model. */
  tensors(checkpoint_id: string): AsyncIterable<CheckpointTensor> {
    const path = { checkpoint_id };
    return allPages((after) =>
      bodyOf(
        `tensors of ${checkpoint_id}`,
        this.http.GET('/v1/checkpoints/{checkpoint_id}/tensors', {
          params: { path, query: { after, limit: 100 } },
        }),
      ),
    );
  }

  /**
   * One state of a parameter, by default its fp32 weights, as a safetensors file.
   * @throws ApiError, ConnectionError when it cannot be opened; a connection that breaks later is an error of the
   *   stream
   */
  async openTensor(
    checkpoint_id: string,
    name: string,
    { state, signal }: { state?: TensorState; signal?: AbortSignal } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const params = { path: { checkpoint_id, name }, query: { state } };
    const body = await bodyOf(
      `tensor ${name} of ${checkpoint_id}`,
      this.http.GET('/v1/checkpoints/{checkpoint_id}/tensors/{name}', {
        params,
        parseAs: 'stream',
        ...(signal && { signal }),
      }),
    );
    if (body === null) throw new Error(`${name}: an answer without a body`);
    return body as unknown as ReadableStream<Uint8Array>;
  }

  /**
   * Requests a checkpoint in which one state of a parameter, by default its fp32 weights, has other values.
   * @param content a safetensors file with one tensor, as `openTensor` returns it
   */
  setTensor(
    checkpoint_id: string,
    name: string,
    content: Content,
    { state, signal }: { state?: TensorState; signal?: AbortSignal } = {},
  ): Promise<TensorEdit> {
    const params = { path: { checkpoint_id, name }, query: { state } };
    return bodyOf(
      `change of ${name} of ${checkpoint_id}`,
      this.http.PUT('/v1/checkpoints/{checkpoint_id}/tensors/{name}', {
        params,
        ...raw(content, 'application/octet-stream'),
        ...(signal && { signal }),
      }),
    );
  }

  /** Progress of a requested change. */
  edit(checkpoint_id: string, edit_id: string): Promise<TensorEdit> {
    const params = { path: { checkpoint_id, edit_id } };
    return bodyOf(
      `change ${edit_id} of ${checkpoint_id}`,
      this.http.GET('/v1/checkpoints/{checkpoint_id}/edits/{edit_id}', { params }),
    );
  }

  /** Requests an export of the weights in another format. */
  export(checkpoint_id: string, body: ExportRequest): Promise<CheckpointExport> {
    const params = { path: { checkpoint_id } };
    return bodyOf(
      `export of ${checkpoint_id}`,
      this.http.POST('/v1/checkpoints/{checkpoint_id}/export', { params, body }),
    );
  }

  async exports(checkpoint_id: string): Promise<CheckpointExport[]> {
    const params = { path: { checkpoint_id } };
    const page = await bodyOf(
      `exports of ${checkpoint_id}`,
      this.http.GET('/v1/checkpoints/{checkpoint_id}/exports', { params }),
    );
    return page.data;
  }
}
