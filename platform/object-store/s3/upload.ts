/**
 * Uploads of any length in parts that are held in memory only while they travel. The signature of each request covers the
 * SHA-256 of its bytes, which every S3 server checks. A CRC-32 is sent beside it, because AWS refuses bytes for a bucket with a
 * default retention (Object Lock) without a checksum header: it costs next to nothing, while an MD5 would take longer than all the
 * rest of an upload, and the newer trailing checksums are refused by many servers. A failed upload is aborted, so that its parts
 * cost nothing.
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

export interface UploadTarget {
  Bucket: string;
  Key: string;
  ContentType?: string;
}

export interface UploadLimits {
  /** Size of each part but the last; at least 5 MiB, as S3 wants it. */
  partBytes: number;
  /** Parts that travel at once; as many are in memory. */
  parallelParts: number;
}

/** Of a long upload. S3 allows 10,000, and what is said of a stream's length need not be exact. */
const MOST_PARTS = 9000;

/**
 * Parts of an upload are of one size, but for the last: some servers want that.
 * @param bytes of a stream, about; undefined where nobody knows
 */
export function limitsFor(body: PutBody, bytes: number | undefined, limits: UploadLimits): UploadLimits {
  const length = stablePieces(body)?.reduce((sum, piece) => sum + piece.length, 0) ?? bytes ?? 0;
  return { ...limits, partBytes: Math.max(limits.partBytes, Math.ceil(length / MOST_PARTS)) };
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
    // Closes the body after a failure, also when only the first two parts were taken. Does nothing at its end.
    await parts.return(undefined);
  }
}

/** One PUT with everything in it. */
export async function putWhole(
  client: S3Client,
  target: UploadTarget & { IfNoneMatch?: string },
  body: Uint8Array,
): Promise<void> {
  await client.send(new PutObjectCommand({ ...target, Body: body, ChecksumCRC32: checksum(body) }));
}

/** CRC-32 as S3 writes it: base64 of its four bytes, the highest first. */
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
    // Only now: a connection that broke may still hold on to the bytes of a part that failed.
    part.release();
  }

  try {
    await forEachParallel(parts, parallelParts, send, () => stop.abort());
    await complete(client, { Bucket, Key, UploadId, MultipartUpload: { Parts: sent } }, bytes);
    return bytes;
  } catch (error) {
    // The first error is the one to report; parts that stay behind are what the bucket's lifecycle rule is
    // for.
    await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId })).catch(() => undefined);
    throw error;
  }
}

/**
 * Ends an upload. One that the server does not know any more may have been ended by this very request, of which the answer was lost:
 * then the object has as many bytes and as many parts. Whoever else writes the key at the same time writes the same content.
 */
async function complete(
  client: S3Client,
  request: CompleteMultipartUploadCommandInput & UploadTarget,
  bytes: number,
): Promise<void> {
  try {
    await client.send(new CompleteMultipartUploadCommand(request));
  } catch (error) {
    if ((error as Error).name !== 'NoSuchUpload') throw error;
    const { Bucket, Key, MultipartUpload } = request;
    const stored = await client.send(new HeadObjectCommand({ Bucket, Key })).catch(() => null);
    const parts = MultipartUpload?.Parts?.map(({ ETag = '' }) => ETag) ?? [];
    if (stored?.ContentLength !== bytes || !isWholeOf(stored.ETag, parts)) throw error;
  }
}

/** Servers that make the ETag of an object of those of its parts end it with their number; of others only the size is compared. */
function isWholeOf(etag: string | undefined, parts: readonly string[]): boolean {
  const made = /^"?([0-9a-f]{32})-(\d+)"?$/.exec(etag ?? '');
  const sums = parts.map((part) => /^"?([0-9a-f]{32})"?$/.exec(part)?.[1]);
  if (!made || sums.includes(undefined)) return true;
  const whole = createHash('md5')
    .update(Buffer.from(sums.join(''), 'hex'))
    .digest('hex');
  return made[1] === whole && Number(made[2]) === parts.length;
}

async function* chain<T>(first: T[], rest: AsyncGenerator<T>): AsyncGenerator<T> {
  yield* first;
  yield* rest;
}
