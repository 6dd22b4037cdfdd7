/**
 * The object store port: named, immutable-by-habit byte sequences. Datasets, checkpoint shards, manifests and
 * exports live behind it; `FileStore` (a directory) and `S3Store` implement it and pass one conformance
 * suite.
 *
 * What a caller may rely on:
 * - A key is visible to `get`, `head` and `list` only with all of its bytes: a put that fails or dies leaves
 *   nothing.
 * - After `put` resolved, every reader sees the new bytes, and they are on stable storage.
 * - `createOnly` has exactly one winner among any number of concurrent writers of one key.
 * - Everything that is rejected is an `ObjectStoreError` with a stable code.
 *
 * What it does not offer: rename, append, mutable metadata, directories, atomicity over several keys. A key
 * must not be a path prefix of another (`a` and `a/b`), because a directory cannot hold both.
 */

/** One stored object as `head` and `list` report it. */
export interface ObjectInfo {
  key: string;
  bytes: number;
  /** RFC 3339, the store's clock. */
  last_modified: string;
  /**
   * Version of the content. A put of different bytes changes it, also when the size and the time stay the same; a put of the same bytes
   * may keep it, as on S3. It has no quotes and is comparable only with etags of the same key. Empty when the server sends none.
   */
  etag: string;
}

/** Half-open range of bytes `[begin, end)`, absolute in the object. */
export interface ByteRange {
  begin: number;
  end: number;
}

export interface PutOptions {
  /** About how many bytes a stream has, where they may be more than 75 GB: an upload in parts needs larger ones then. */
  bytes?: number;
  /**
   * Fail with `precondition_failed` when the key exists. The body is held in memory first (the condition is
   * only dependable on a single request), so it must not exceed `CREATE_ONLY_MAX_BYTES`; larger ones are
   * `invalid_argument`.
   */
  createOnly?: boolean;
  /** Media type; kept by S3, ignored by a directory. */
  contentType?: string;
}

export interface AbandonOptions {
  /** Only those that began before, by the store's clock. */
  began_before?: Date;
  /** Nothing is ended. */
  only_count?: boolean;
  /** Called when some were found, before they are ended; when it rejects, they go on. Whoever comes later begins others. */
  confirm?(): Promise<void>;
}

/**
 * Body of `put`: whole bytes, in one or many pieces, that stay as they are until the put is settled (what they become later can reach
 * no object); or a stream that is consumed once and never held whole in memory.
 */
export type PutBody = Uint8Array | readonly Uint8Array[] | AsyncIterable<Uint8Array>;

/**
 * A directory can write a long piece of a body past the system's memory when the piece begins, in the object as in memory, at a
 * multiple of this, which is one of every disk's block.
 */
export const DIRECT_WRITE_BYTES = 4096;

/** What may be written at a URL. */
export interface UploadTerms {
  bytes: number;
  /** How long. */
  seconds: number;
  /** Of the bytes, base64; null: any bytes, which buckets with Object Lock refuse. */
  sha256: string | null;
}

export interface UploadAddress {
  url: string;
  headers: Record<string, string>;
}

export interface ObjectStore {
  /** `file:///dir` or `s3://bucket/prefix`, without secrets: fit for logs. */
  readonly url: string;

  /**
   * Stores `body` under `key`, replacing what was there unless `createOnly`.
   * An error thrown by the body's own iterator is passed on unchanged, and nothing is stored.
   * @returns the number of bytes stored
   */
  put(key: string, body: PutBody, options?: PutOptions): Promise<{ bytes: number }>;

  /**
   * Reads an object, or exactly `range` of it.
   * @param into memory that the bytes of the range may be put in, when it is long enough: the result then lies in it. Only the
   * caller may look at it before the promise is settled, and nobody writes into it afterwards
   * @throws ObjectStoreError `object_not_found`; `invalid_range` when the object ends before `range.end`
   */
  get(key: string, range?: ByteRange, into?: Buffer): Promise<Buffer>;

  /**
   * Like `get`, in pieces. Errors of the open come from the promise, later ones from the iterator. The result
   * holds a file or connection until it was iterated or its iterator's `return()` was called, also before the first piece.
   */
  stream(key: string, range?: ByteRange): Promise<AsyncIterable<Uint8Array>>;

  /** Size, time and version, or null when there is no such object (a missing bucket is an error, not null). */
  head(key: string): Promise<ObjectInfo | null>;

  /**
   * A URL at which anybody can read just this object for so many seconds, whether it is there or not. Null where the store has none
   * to give, as a directory. A store whose own credentials expire earlier gives one that does, too.
   */
  downloadUrl(key: string, seconds: number): Promise<string | null>;

  /**
   * A URL at which anybody can write just this object, as the terms say, with the headers that come with it. Null where the store has
   * none to give.
   */
  uploadUrl(key: string, terms: UploadTerms): Promise<UploadAddress | null>;

  /** Every object whose key begins with `prefix` (a plain string prefix), in ascending order of key. */
  list(prefix: string): AsyncIterable<ObjectInfo>;

  /**
   * Removes objects; keys that do not exist are passed over in silence. The first key is gone before any
   * other is touched (a manifest before its shards), the rest go in no particular order.
   */
  delete(keys: readonly string[]): Promise<void>;

  /**
   * Ends uploads to keys that begin with `prefix` which began and never finished because their process died: their
   * parts cost money and are listed nowhere. Only for prefixes to which nobody uploads any more, or with `began_before`. A
   * directory has none: its temporary files belong to no key and are swept when it is opened.
   * @returns how many were ended
   */
  abandonUploads(prefix: string, options?: AbandonOptions): Promise<number>;

  /** Proves that the store is reachable with these credentials; used by readiness checks. */
  check(): Promise<void>;

  /** Frees connections. Idempotent; calls after it reject. */
  close(): Promise<void>;
}

/** Largest body of a create-only put: manifests and small documents, never shards. */
export const CREATE_ONLY_MAX_BYTES = 64 * 1024 * 1024;
