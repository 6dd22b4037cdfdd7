/**
 * The object store port: named, immutable-by-habit byte sequences. Datasets, checkpoint shards, manifests and
 * exports live behind it; `FileStore` (a directory) and `S3Store` implement it and pass one conformance
 * suite.
 *
 * Guarantees:
 * - A key is visible to `get`, `head` and `list` only with all of its bytes: a put that fails or dies leaves
 *   nothing.
 * - After `put` resolved, every reader sees the new bytes, and they are on stable storage.
 * - `createOnly` has exactly one winner among any number of concurrent writers of one key.
 * - Everything that is rejected is an `ObjectStoreError` with a stable code.
 *
 * It has no rename, append, mutable metadata, directories, or atomicity over several keys. A key
 * must not be a path prefix of another (`a` and `a/b`), because a directory cannot hold both.
 */

/** Stored object as `head` and `list` report it. */
export interface ObjectInfo {
  key: string;
  bytes: number;
  /** RFC 3339, the store's clock. */
  last_modified: string;
  /**
   * Version of the content. A put of different bytes changes it, even if size and time stay the same; a put
   * of the same bytes may keep it, as on S3. It has no quotes and is comparable only with etags of the same
   * key. Empty when the server sends none.
   */
  etag: string;
}

/** Half-open range of bytes `[begin, end)`, absolute in the object. */
export interface ByteRange {
  begin: number;
  end: number;
}

export interface PutOptions {
  /** Approximate length of a stream that may exceed 75 GB and then needs larger parts. */
  bytes?: number;
  /**
   * Fails with `precondition_failed` when the key exists. The body is buffered in memory, because the
   * condition is only reliable on a single request, so it must not exceed `CREATE_ONLY_MAX_BYTES`; larger
   * ones are `invalid_argument`.
   */
  createOnly?: boolean;
  /** Media type; kept by S3, ignored by a directory. */
  contentType?: string;
}

export interface AbandonOptions {
  /** Selects uploads that began before, by the store's clock. */
  began_before?: Date;
  /** Counts without aborting. */
  only_count?: boolean;
  /** Called when some were found, before they are aborted; a rejection keeps them. */
  confirm?(): Promise<void>;
}

/**
 * Body of `put`:
 * - whole bytes, in one or many pieces, that stay unchanged until the put is settled (later changes reach no
 *   object); or
 * - a stream that is consumed once and never held whole in memory.
 */
export type PutBody = Uint8Array | readonly Uint8Array[] | AsyncIterable<Uint8Array>;

/**
 * Alignment of direct writes. A directory can bypass the page cache for a long piece that begins at a
 * multiple of this both in the object and in memory. It is a multiple of every disk's block size.
 */
export const DIRECT_WRITE_BYTES = 4096;

/** Terms of an upload URL. */
export interface UploadTerms {
  bytes: number;
  /** Validity. */
  seconds: number;
  /** SHA-256 of the bytes, base64; null allows any bytes, which buckets with Object Lock refuse. */
  sha256: string | null;
}

export interface UploadAddress {
  url: string;
  headers: Record<string, string>;
}

export interface ObjectStore {
  /** `file:///dir` or `s3://bucket/prefix`, without secrets, so that it may be logged. */
  readonly url: string;

  /**
   * Stores `body` under `key`, replacing an existing object unless `createOnly`. An error thrown by the
   * body's own iterator is passed on unchanged, and nothing is stored.
   * @returns the number of bytes stored
   */
  put(key: string, body: PutBody, options?: PutOptions): Promise<{ bytes: number }>;

  /**
   * Reads an object, or exactly `range` of it.
   * @param into memory for the bytes of the range, used if it is long enough: the result then lies in it. The
   * caller must not read it before the promise is settled; it is not written afterwards
   * @throws ObjectStoreError `object_not_found`; `invalid_range` when the object ends before `range.end`
   */
  get(key: string, range?: ByteRange, into?: Buffer): Promise<Buffer>;

  /**
   * Streams an object like `get`. Errors of the open reject the promise, later ones the iterator. The result
   * holds a file or connection until it was iterated or its iterator's `return()` was called, also before the
   * first piece.
   */
  stream(key: string, range?: ByteRange): Promise<AsyncIterable<Uint8Array>>;

  /**
   * Returns size, time and version, or null when there is no such object (a missing bucket is an error, not
   * null).
   */
  head(key: string): Promise<ObjectInfo | null>;

  /**
   * Returns a URL that lets any client read this object for `seconds`, even if it does not exist. Null if the
   * store has none, like a directory. The URL expires earlier if the store's own credentials do.
   */
  downloadUrl(key: string, seconds: number): Promise<string | null>;

  /**
   * Returns a URL and headers that let any client write this object under the given terms. Null if the store
   * has none.
   */
  uploadUrl(key: string, terms: UploadTerms): Promise<UploadAddress | null>;

  /** Lists all objects whose key begins with `prefix` (a plain string prefix), in ascending order of key. */
  list(prefix: string): AsyncIterable<ObjectInfo>;

  /**
   * Removes objects; missing keys are ignored. The first key is removed before the others (a manifest before
   * its shards), which follow in no particular order.
   */
  delete(keys: readonly string[]): Promise<void>;

  /**
   * Aborts unfinished uploads of dead processes to keys that begin with `prefix`: their parts cost money and
   * are listed nowhere. Only for prefixes without active uploads, or with `began_before`. A directory has
   * none: its temporary files belong to no key and are swept when it is opened.
   * @returns the number of uploads
   */
  abandonUploads(prefix: string, options?: AbandonOptions): Promise<number>;

  /** Checks that the store is reachable with these credentials; used by readiness checks. */
  check(): Promise<void>;

  /** Frees connections. Idempotent; later calls reject. */
  close(): Promise<void>;
}

/** Largest body of a create-only put: manifests and small documents, never shards. */
export const CREATE_ONLY_MAX_BYTES = 64 * 1024 * 1024;
