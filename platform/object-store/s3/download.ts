/** Downloads that resume when the connection breaks within a body. */
import type { Readable } from 'node:stream';
import { GetObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { ObjectStoreError } from '../common/errors.js';
import { rangeError } from '../common/keys.js';
import type { ByteRange } from '../common/port.js';
import { startGenerator } from '../common/start-generator.js';
import { s3Error } from './errors.js';

export interface DownloadSource {
  Bucket: string;
  Key: string;
  /** Name of the object in errors. */
  name: string;
  /** Required version of the object. */
  etag?: string;
}

/** Attempts to resume a body without receiving a byte in between. */
const FRUITLESS_TRIES = 3;

interface Opened {
  body: Readable;
  /** Bytes of the body, absolute in the object. */
  range: ByteRange;
  etag: string | undefined;
}

/**
 * Opens an object for reading.
 * @param range must not be empty (S3 cannot express that); the whole object by default
 * @throws ObjectStoreError when it cannot be opened; later errors come from the iterator
 */
export async function download(
  client: S3Client,
  source: DownloadSource,
  range?: ByteRange,
): Promise<AsyncIterable<Uint8Array>> {
  return startGenerator(readOn(client, source, await open(client, source, range)));
}

/** Resumes a download until its end. Wrapped by `startGenerator`. */
async function* readOn(client: S3Client, source: DownloadSource, first: Opened): AsyncGenerator<Uint8Array> {
  const { end } = first.range;
  let position = first.range.begin;
  let opened = first;
  try {
    yield new Uint8Array();
    for (let fruitless = 0; ; fruitless += 1) {
      try {
        // An empty body must be read as well: its connection is in use until then.
        for await (const piece of opened.body) {
          position += piece.length;
          fruitless = 0;
          yield piece;
        }
        if (position >= end) return;
        throw new Error(`the body ended at byte ${position} of ${end}`);
      } catch (error) {
        if (fruitless === FRUITLESS_TRIES) throw s3Error(error, source.name);
        opened = await open(client, source, { begin: position, end }, first.etag);
      }
    }
  } finally {
    opened.body.destroy();
  }
}

async function open(
  client: S3Client,
  { Bucket, Key, name, etag: wanted }: DownloadSource,
  range?: ByteRange,
  etag = wanted,
): Promise<Opened> {
  // An HTTP range includes the last byte.
  const Range = range && `bytes=${range.begin}-${range.end - 1}`;
  try {
    const reply = await client.send(new GetObjectCommand({ Bucket, Key, Range, IfMatch: etag }));
    const body = reply.Body as Readable;
    const begin = range?.begin ?? 0;
    const received = { begin, end: begin + (reply.ContentLength ?? 0) };
    if (range && received.end !== range.end) {
      body.destroy();
      throw rangeError(name, range, received.end);
    }
    return { body, range: received, etag: reply.ETag };
  } catch (error) {
    throw openError(error, name, range);
  }
}

function openError(error: unknown, name: string, range: ByteRange | undefined): ObjectStoreError {
  if (error instanceof ObjectStoreError) return error;
  const typed = s3Error(error, name);
  if (typed.code === 'precondition_failed') {
    const message = `${name} was replaced while it was read`;
    return new ObjectStoreError('object_store_unavailable', message, { cause: error });
  }
  return range && typed.code === 'invalid_range' ? rangeError(name, range, null) : typed;
}
