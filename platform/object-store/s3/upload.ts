/**
 * Uploads of any length in parts, each held in memory only during its transfer. The signature of each request covers
 * the SHA-256 of its bytes, which every S3 server checks. A CRC-32 is sent as well, because AWS requires a checksum
 * header in a bucket with a default retention (Object Lock). A CRC-32 costs next to nothing. An MD5 would take longer
 * than the rest of an upload, and many servers refuse the newer trailing checksums. A failed upload is aborted, so that
 * its parts cost nothing.
 */
import { createHash } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  type CompleteMultipartUploadCommandInput,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { crc32 } from '@node-rs/crc32';
import { stablePieces } from '../common/body.js';
import { type BodyPart, bodyParts } from '../common/body-parts.js';
import { forEachParallel } from '../common/parallel.js';
import type { PutBody } from '../common/port.js';
import { mayHaveHadEffect } from './errors.js';

export interface UploadTarget {
  Bucket: string;
  Key: string;
  ContentType?: string;
}

export interface UploadLimits {
  /** Size of each part but the last; at least 5 MiB, as S3 requires. */
  partBytes: number;
  /** Concurrent parts; as many are in memory. */
  parallelParts: number;
}

/** Maximum of parts. S3 allows 10,000, and the stated length of a stream need not be exact. */
const MAX_PARTS = 9000;

/**
 * Returns limits with one part size for the whole upload, as some servers require.
 * @param bytes approximate length of a stream; undefined if unknown
 */
export function limitsFor(body: PutBody, bytes: number | undefined, limits: UploadLimits): UploadLimits {
  const length = stablePieces(body)?.reduce((sum, piece) => sum + piece.length, 0) ?? bytes ?? 0;
  return { ...limits, partBytes: Math.max(limits.partBytes, Math.ceil(length / MAX_PARTS)) };
}

/** @returns the number of bytes stored */
export async function upload(
  client: S3Client,
  target: UploadTarget,
  body: PutBody,
  limits: UploadLimits,
): Promise<number> {
  const parts = bodyParts(body, limits.partBytes);
  try {
    const first = await parts.next();
    const second = first.done ? first : await parts.next();
    if (first.done || second.done) {
      const whole = first.done ? new Uint8Array() : first.value.bytes;
      await putWhole(client, target, whole);
      return whole.length;
    }
    return await uploadParts(client, target, chain([first.value, second.value], parts), limits.parallelParts);
  } finally {
    // Closes the body after a failure, also if only the first two parts were taken. Does nothing at its end.
    await parts.return(undefined);
  }
}

/** Uploads everything with one PUT. */
export async function putWhole(
  client: S3Client,
  target: UploadTarget & { IfNoneMatch?: string },
  body: Uint8Array,
): Promise<void> {
  await client.send(new PutObjectCommand({ ...target, Body: body, ChecksumCRC32: checksum(body) }));
}

/** Returns the CRC-32 as S3 encodes it: base64 of its four bytes, big-endian. */
function checksum(bytes: Uint8Array): string {
  const four = Buffer.alloc(4);
  four.writeUInt32BE(crc32(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)));
  return four.toString('base64');
}

async function uploadParts(
  client: S3Client,
  { Bucket, Key, ContentType }: UploadTarget,
  parts: AsyncIterator<BodyPart>,
  parallelParts: number,
): Promise<number> {
  const { UploadId } = await client.send(
    new CreateMultipartUploadCommand({ Bucket, Key, ContentType, ChecksumAlgorithm: 'CRC32' }),
  );
  const sent: CompletedPart[] = [];
  const stop = new AbortController();
  let bytes = 0;

  async function send(part: BodyPart, index: number): Promise<void> {
    const PartNumber = index + 1;
    const ChecksumCRC32 = checksum(part.bytes);
    const command = new UploadPartCommand({
      Bucket,
      Key,
      UploadId,
      PartNumber,
      Body: part.bytes,
      ChecksumCRC32,
    });
    const { ETag } = await client.send(command, { abortSignal: stop.signal });
    sent[index] = { PartNumber, ETag, ChecksumCRC32 };
    bytes += part.bytes.length;
    // Released only now: a broken connection may still access the bytes of a failed part.
    part.release();
  }

  try {
    await forEachParallel(parts, parallelParts, send, () => stop.abort());
    await complete(client, { Bucket, Key, UploadId, MultipartUpload: { Parts: sent } }, bytes);
    return bytes;
  } catch (error) {
    // The first error is reported; the bucket's lifecycle rule removes parts that stay behind.
    await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId })).catch(() => undefined);
    throw error;
  }
}

/**
 * Completes an upload. A request that failed may have completed it: its answer was lost, or the server does not know
 * the upload any more. The object then has the same number of bytes and parts. Concurrent writers of a key write the
 * same content.
 */
async function complete(
  client: S3Client,
  request: CompleteMultipartUploadCommandInput & UploadTarget,
  bytes: number,
): Promise<void> {
  try {
    await client.send(new CompleteMultipartUploadCommand(request));
  } catch (error) {
    const isGone = (error as Error).name === 'NoSuchUpload';
    if (!isGone && !mayHaveHadEffect(error)) throw error;
    const { Bucket, Key, MultipartUpload } = request;
    const stored = await client.send(new HeadObjectCommand({ Bucket, Key })).catch(() => null);
    const parts = MultipartUpload?.Parts?.map(({ ETag = '' }) => ETag) ?? [];
    // While the upload may still exist, an object of the same size may be an older one.
    if (stored?.ContentLength !== bytes || !(isWholeOf(stored.ETag, parts) ?? isGone)) throw error;
  }
}

/**
 * Returns whether an object's ETag was derived from these parts. Such an ETag ends with the number of parts; for any
 * other ETag the answer is null.
 */
function isWholeOf(etag: string | undefined, parts: readonly string[]): boolean | null {
  const made = /^"?([0-9a-f]{32})-(\d+)"?$/.exec(etag ?? '');
  const sums = parts.map((part) => /^"?([0-9a-f]{32})"?$/.exec(part)?.[1]);
  if (!made || sums.includes(undefined)) return null;
  const whole = createHash('md5')
    .update(Buffer.from(sums.join(''), 'hex'))
    .digest('hex');
  return made[1] === whole && Number(made[2]) === parts.length;
}

async function* chain<T>(first: T[], rest: AsyncGenerator<T>): AsyncGenerator<T> {
  yield* first;
  yield* rest;
}
