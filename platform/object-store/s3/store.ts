/**
 * Object store on S3 or a compatible server. Small bodies are sent with one PUT, longer ones in parts
 * (upload.ts). The SDK retries transient failures. Create-only is a plain PUT with `If-None-Match: *`,
 * because servers other than AWS ignore conditions on the completion of a multipart upload.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { BodyError, wholeBody } from '../common/body.js';
import { ObjectStoreError } from '../common/errors.js';
import { checkKey, checkPrefix, checkRange, rangeError } from '../common/keys.js';
import { forEachParallel } from '../common/parallel.js';
import type {
  AbandonOptions,
  ByteRange,
  ObjectInfo,
  ObjectStore,
  PutBody,
  PutOptions,
  UploadAddress,
  UploadTerms,
} from '../common/port.js';
import { concat, gather, memoryFor } from '../memory.js';
import { makeS3Client, type S3ClientOptions } from './client.js';
import { download } from './download.js';
import { isConditionalConflict, mayHaveHadEffect, s3Error, wasRetried } from './errors.js';
import { abandonUploads } from './leftovers.js';
import { limitsFor, putWhole, type UploadLimits, type UploadTarget, upload } from './upload.js';

const DEFAULT_LIMITS: UploadLimits = { partBytes: 8 * 1024 * 1024, parallelParts: 4 };
const SHA256_HEADER = 'x-amz-checksum-sha256';
const PARALLEL_DELETES = 8;
const CONFLICT_TRIES = 5;
const CONFLICT_DELAY_MS = 50;

export interface S3StoreOptions extends S3ClientOptions {
  bucket: string;
  /** Prefix of every key of this store, without leading or trailing slashes; empty for none. */
  prefix: string;
  limits?: UploadLimits;
}

export class S3Store implements ObjectStore {
  readonly url: string;
  private readonly client: S3Client;
  private readonly bucket: string;
  private readonly prefix: string;
  private readonly limits: UploadLimits;
  private closed = false;

  constructor(options: S3StoreOptions) {
    const { bucket, prefix } = options;
    this.bucket = bucket;
    this.prefix = prefix === '' ? '' : `${prefix}/`;
    this.url = `s3://${bucket}/${prefix}`;
    this.limits = options.limits ?? DEFAULT_LIMITS;
    this.client = makeS3Client(options);
  }

  async put(key: string, body: PutBody, options: PutOptions = {}): Promise<{ bytes: number }> {
    const target = { ...this.at(key), ContentType: options.contentType };
    try {
      if (!options.createOnly)
        return {
          bytes: await upload(this.client, target, body, limitsFor(body, options.bytes, this.limits)),
        };
      const content = await wholeBody(key, body);
      await this.create(key, target, content);
      return { bytes: content.length };
    } catch (error) {
      if (error instanceof BodyError) throw error.cause;
      throw s3Error(error, key);
    }
  }

  async get(key: string, range?: ByteRange, into?: Buffer): Promise<Buffer> {
    const body = await this.stream(key, range);
    return range ? gather(body, memoryFor(range.end - range.begin, into)) : concat(body);
  }

  async stream(key: string, range?: ByteRange): Promise<AsyncIterable<Uint8Array>> {
    const source = { ...this.at(key), name: key };
    if (range) checkRange(range);
    if (range && range.begin === range.end) return this.emptyStream(key, range);
    try {
      return await download(this.client, source, range);
    } catch (error) {
      const denied = error instanceof ObjectStoreError && error.code === 'access_denied';
      if (!denied || !(await this.isMissing(key))) throw error;
      throw new ObjectStoreError('object_not_found', `no object ${key}`, { cause: error });
    }
  }

  async head(key: string): Promise<ObjectInfo | null> {
    try {
      const reply = await this.client.send(new HeadObjectCommand(this.at(key)));
      const { ContentLength: bytes = 0, LastModified, ETag } = reply;
      return { key, bytes, last_modified: timeText(LastModified), etag: etagText(ETag) };
    } catch (error) {
      const typed = s3Error(error, key);
      if (typed.code !== 'object_not_found' && typed.code !== 'access_denied') throw typed;
      if (await this.isMissing(key)) return null;
      if (typed.code === 'access_denied') throw typed;
      // An answer to HEAD has no body: a missing object and a missing bucket look the same.
      await this.check();
      return null;
    }
  }

  async downloadUrl(key: string, seconds: number): Promise<string> {
    const target = this.at(key);
    try {
      return await getSignedUrl(this.client, new GetObjectCommand(target), { expiresIn: seconds });
    } catch (error) {
      throw s3Error(error, key);
    }
  }

  async uploadUrl(key: string, { bytes, seconds, sha256 }: UploadTerms): Promise<UploadAddress> {
    const headers: Record<string, string> = sha256 === null ? {} : { [SHA256_HEADER]: sha256 };
    const command = new PutObjectCommand({
      ...this.at(key),
      ContentLength: bytes,
      ...(sha256 !== null && { ChecksumSHA256: sha256 }),
    });
    try {
      // The server enforces the signed headers.
      const url = await getSignedUrl(this.client, command, {
        expiresIn: seconds,
        signableHeaders: new Set(['host', 'content-length', SHA256_HEADER]),
        unhoistableHeaders: new Set([SHA256_HEADER]),
      });
      return { url, headers };
    } catch (error) {
      throw s3Error(error, key);
    }
  }

  async *list(prefix: string): AsyncGenerator<ObjectInfo> {
    this.checkOpen();
    checkPrefix(prefix);
    let ContinuationToken: string | undefined;
    do {
      const request = { Bucket: this.bucket, Prefix: this.prefix + prefix, ContinuationToken };
      const page = await this.client.send(new ListObjectsV2Command(request)).catch((error) => {
        throw s3Error(error, this.url);
      });
      for (const { Key = '', Size: bytes = 0, LastModified, ETag } of page.Contents ?? []) {
        const key = Key.slice(this.prefix.length);
        yield { key, bytes, last_modified: timeText(LastModified), etag: etagText(ETag) };
      }
      ContinuationToken = page.IsTruncated ? page.NextContinuationToken : undefined;
    } while (ContinuationToken);
  }

  async delete(keys: readonly string[]): Promise<void> {
    const [first, ...rest] = keys.map((key) => this.at(key));
    // One request for each: the bulk request needs checksums that servers do not agree on, and has its own
    // kind of errors.
    if (first) await this.deleteOne(first);
    await forEachParallel(asyncItems(rest), PARALLEL_DELETES, (target) => this.deleteOne(target));
  }

  async abandonUploads(prefix: string, options: AbandonOptions = {}): Promise<number> {
    this.checkOpen();
    checkPrefix(prefix);
    try {
      const where = { Bucket: this.bucket, Prefix: this.prefix + prefix };
      return await abandonUploads(this.client, where, options);
    } catch (error) {
      throw s3Error(error, this.url);
    }
  }

  async check(): Promise<void> {
    this.checkOpen();
    try {
      await this.client.send(new HeadBucketCommand({ Bucket: this.bucket }));
    } catch (error) {
      const typed = s3Error(error, this.url);
      if (typed.code !== 'object_not_found') throw typed;
      throw new ObjectStoreError('bucket_not_found', `no bucket ${this.bucket}`, { cause: error });
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    this.client.destroy();
  }

  /**
   * Distinguishes a missing object from a forbidden one. Without permission to list the bucket, S3 reports
   * access denied for a missing object; listing its folder, if permitted, decides.
   */
  private async isMissing(key: string): Promise<boolean> {
    const Key = this.prefix + key;
    const listing = new ListObjectsV2Command({ Bucket: this.bucket, Prefix: Key, MaxKeys: 1 });
    const found = await this.client.send(listing).catch(() => null);
    return found !== null && !found.Contents?.some((entry) => entry.Key === Key);
  }

  private at(key: string): { Bucket: string; Key: string } {
    this.checkOpen();
    checkKey(key);
    return { Bucket: this.bucket, Key: this.prefix + key };
  }

  private checkOpen(): void {
    if (this.closed) throw new ObjectStoreError('invalid_argument', 'the object store is closed');
  }

  private async deleteOne(target: { Bucket: string; Key: string }): Promise<void> {
    try {
      await this.client.send(new DeleteObjectCommand(target));
    } catch (error) {
      const typed = s3Error(error, target.Key);
      if (typed.code !== 'object_not_found') throw typed;
    }
  }

  private async create(key: string, target: UploadTarget, body: Uint8Array): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await putWhole(this.client, { ...target, IfNoneMatch: '*' }, body);
      } catch (error) {
        if (isConditionalConflict(error) && tries < CONFLICT_TRIES) {
          await sleep(CONFLICT_DELAY_MS * tries);
          continue;
        }
        const typed = s3Error(error, key);
        // An attempt may have succeeded with its answer lost: the existing object is then our own.
        const mayBeOurs = typed.code === 'precondition_failed' ? wasRetried(error) : mayHaveHadEffect(error);
        if (mayBeOurs && (await this.holds(key, body))) return;
        throw typed;
      }
    }
  }

  /** False if that is not known. */
  private async holds(key: string, body: Uint8Array): Promise<boolean> {
    const stored = await this.get(key).catch(() => null);
    return stored?.equals(body) ?? false;
  }

  private async emptyStream(key: string, range: ByteRange): Promise<AsyncIterable<Uint8Array>> {
    const info = await this.head(key);
    if (!info) throw new ObjectStoreError('object_not_found', `no object ${key}`);
    if (info.bytes < range.end) throw rangeError(key, range, info.bytes);
    return asyncItems<Uint8Array>([]);
  }
}

async function* asyncItems<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

function timeText(time: Date | undefined): string {
  return (time ?? new Date(0)).toISOString();
}

/** Removes the quotes, which some servers omit in listings. */
function etagText(etag = ''): string {
  return etag.replaceAll('"', '');
}
