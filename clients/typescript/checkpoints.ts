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

  get(checkpointId: string): Promise<Checkpoint> {
    const params = { path: { checkpoint_id: checkpointId } };
    return bodyOf(`checkpoint ${checkpointId}`, this.http.GET('/v1/checkpoints/{checkpoint_id}', { params }));
  }

  /** Protects a checkpoint from retention, or ends the protection. */
  pin(checkpointId: string, pinned = true): Promise<Checkpoint> {
    const params = { path: { checkpoint_id: checkpointId } };
    return bodyOf(
      `pin ${checkpointId}`,
      this.http.PATCH('/v1/checkpoints/{checkpoint_id}', { params, body: { pinned } }),
    );
  }

  async delete(checkpointId: string): Promise<void> {
    const params = { path: { checkpoint_id: checkpointId } };
    await bodyOf(`delete ${checkpointId}`, this.http.DELETE('/v1/checkpoints/{checkpoint_id}', { params }));
  }

  /** Reads the whole checkpoint and reports damaged objects. */
  verify(checkpointId: string): Promise<CheckpointVerdict> {
    const params = { path: { checkpoint_id: checkpointId } };
    return bodyOf(
      `verify ${checkpointId}`,
      this.http.POST('/v1/checkpoints/{checkpoint_id}/verify', { params }),
    );
  }

  /** Download URLs of the files of a checkpoint, or with `format` of one of its exports. */
  downloadUrls(checkpointId: string, body: DownloadRequest = {}): Promise<Download> {
    const params = { path: { checkpoint_id: checkpointId } };
    return bodyOf(
      `files of ${checkpointId}`,
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

  /** A tar archive of all files of a checkpoint, or with `format` of one of its exports. */
  archive(
    checkpointId: string,
    query: ExportRequest = {},
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const params = { path: { checkpoint_id: checkpointId }, query };
    return bodyOf(
      `archive of ${checkpointId}`,
      this.http.GET('/v1/checkpoints/{checkpoint_id}/archive', {
        params,
        parseAs: 'stream',
        ...(signal && { signal }),
      }),
    ) as Promise<ReadableStream<Uint8Array>>;
  }

  /** Parameters and their states, in the order of the model. */
  tensors(checkpointId: string): AsyncIterable<CheckpointTensor> {
    const path = { checkpoint_id: checkpointId };
    return allPages((after) =>
      bodyOf(
        `tensors of ${checkpointId}`,
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
    checkpointId: string,
    name: string,
    { state, signal }: { state?: TensorState; signal?: AbortSignal } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const params = { path: { checkpoint_id: checkpointId, name }, query: { state } };
    const body = await bodyOf(
      `tensor ${name} of ${checkpointId}`,
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
    checkpointId: string,
    name: string,
    content: Content,
    { state, signal }: { state?: TensorState; signal?: AbortSignal } = {},
  ): Promise<TensorEdit> {
    const params = { path: { checkpoint_id: checkpointId, name }, query: { state } };
    return bodyOf(
      `change of ${name} of ${checkpointId}`,
      this.http.PUT('/v1/checkpoints/{checkpoint_id}/tensors/{name}', {
        params,
        ...raw(content, 'application/octet-stream'),
        ...(signal && { signal }),
      }),
    );
  }

  /** Progress of a requested change. */
  edit(checkpointId: string, editId: string): Promise<TensorEdit> {
    const params = { path: { checkpoint_id: checkpointId, edit_id: editId } };
    return bodyOf(
      `change ${editId} of ${checkpointId}`,
      this.http.GET('/v1/checkpoints/{checkpoint_id}/edits/{edit_id}', { params }),
    );
  }

  /** Requests an export of the weights in another format. */
  export(checkpointId: string, body: ExportRequest): Promise<CheckpointExport> {
    const params = { path: { checkpoint_id: checkpointId } };
    return bodyOf(
      `export of ${checkpointId}`,
      this.http.POST('/v1/checkpoints/{checkpoint_id}/export', { params, body }),
    );
  }

  async exports(checkpointId: string): Promise<CheckpointExport[]> {
    const params = { path: { checkpoint_id: checkpointId } };
    const page = await bodyOf(
      `exports of ${checkpointId}`,
      this.http.GET('/v1/checkpoints/{checkpoint_id}/exports', { params }),
    );
    return page.data;
  }
}
