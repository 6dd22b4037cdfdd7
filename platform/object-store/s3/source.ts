/**
 * Read-only objects in external buckets. An object that changes while it is read is refused: its ETag is a
 * condition of every request after the first.
 */
import { HeadObjectCommand, ListObjectsV2Command, type S3Client } from '@aws-sdk/client-s3';
import { type S3Uri, ZerofleetError } from '../../../contracts/index.js';
import type { SourceObject } from '../../content-sources.js';
import { makeS3Client, type S3ClientOptions } from './client.js';
import { type DownloadSource, download } from './download.js';
import { s3Error } from './errors.js';

/** Maximum of objects in a folder, more than any model has. */
const MAX_NAMES = 10_000;

/** Regions become part of a host name, so their form is restricted. */
const REGION = /^[a-z]{2}(-[a-z]+)+-\d{1,2}$/;

/** Reader of buckets in any region: the server names the region of a bucket, which is then used. */
export class S3Source {
  /** By region; empty: the region of the options. */
  private readonly clients = new Map<string, S3Client>();
  private readonly regions = new Map<string, string>();

  constructor(private readonly options: S3ClientOptions) {}

  /**
   * @throws ZerofleetError `dataset_source_missing`, `dataset_source_denied`; ObjectStoreError when the server does not
   * answer
   */
  async find({ bucket, key }: S3Uri): Promise<SourceObject> {
    const name = `s3://${bucket}/${key}`;
    try {
      const reply = await this.ask(bucket, (client) =>
        client.send(new HeadObjectCommand({ Bucket: bucket, Key: key })),
      );
      const { ETag: etag } = reply;
      const source = { Bucket: bucket, Key: key, name, ...(etag !== undefined && { etag }) };
      return { uri: name, bytes: reply.ContentLength ?? 0, etag: etag ?? '', read: () => this.read(source) };
    } catch (error) {
      throw sourceError(error, name);
    }
  }

  /**
   * Lists the names of the objects directly in a folder, in ascending order.
   * @param key the folder's, without a trailing slash
   * @throws as `find`; ZerofleetError `model_archive_invalid` for a folder of more than `MAX_NAMES` objects
   */
  async list({ bucket, key }: S3Uri): Promise<string[]> {
    const folder = `s3://${bucket}/${key}/`;
    const names: string[] = [];
    let ContinuationToken: string | undefined;
    do {
      const request = { Bucket: bucket, Prefix: `${key}/`, Delimiter: '/', ContinuationToken };
      const page = await this.ask(bucket, (client) => client.send(new ListObjectsV2Command(request))).catch(
        (error) => {
          throw sourceError(error, folder);
        },
      );
      for (const { Key = '' } of page.Contents ?? []) {
        const name = Key.slice(key.length + 1);
        // Some tools mark a folder by an object of its name.
        if (name !== '' && !name.includes('/')) names.push(name);
      }
      if (names.length > MAX_NAMES)
        throw new ZerofleetError('model_archive_invalid', `${folder} has more than ${MAX_NAMES} objects`);
      ContinuationToken = page.IsTruncated ? page.NextContinuationToken : undefined;
    } while (ContinuationToken);
    return names;
  }

  close(): void {
    for (const client of this.clients.values()) client.destroy();
  }

  private async ask<T>(bucket: string, send: (client: S3Client) => Promise<T>): Promise<T> {
    try {
      return await send(this.clientOf(bucket));
    } catch (error) {
      const region = bucketRegion(error);
      if (region === null || region === this.regions.get(bucket)) throw error;
      this.regions.set(bucket, region);
      return send(this.clientOf(bucket));
    }
  }

  private clientOf(bucket: string): S3Client {
    const region = this.regions.get(bucket) ?? '';
    const known = this.clients.get(region);
    if (known) return known;
    const client = makeS3Client({ ...this.options, ...(region !== '' && { region }) });
    this.clients.set(region, client);
    return client;
  }

  private async *read(source: DownloadSource) {
    try {
      yield* await download(this.clientOf(source.Bucket), source);
    } catch (error) {
      throw sourceError(error, source.name);
    }
  }
}

/** Returns the region of a bucket from a redirect or signature error; null for other errors. */
function bucketRegion(error: unknown): string | null {
  const { $metadata, $response } = error as {
    $metadata?: { httpStatusCode?: number };
    $response?: { headers?: Record<string, string> };
  };
  const region = $response?.headers?.['x-amz-bucket-region'];
  const status = $metadata?.httpStatusCode;
  return (status === 301 || status === 400) && region !== undefined && REGION.test(region) ? region : null;
}

/** Converts an error: problems of the object itself are the client's to fix, others the server's. */
function sourceError(error: unknown, name: string): Error {
  const typed = s3Error(error, name);
  // For a broken download the first cause is more specific than the final error.
  const { code } = typed.cause === undefined ? typed : s3Error(typed.cause, name);
  const options = { cause: error };
  if (code === 'object_not_found' || code === 'bucket_not_found')
    return new ZerofleetError('dataset_source_missing', `there is no ${name}`, options);
  if (code === 'access_denied')
    return new ZerofleetError(
      'dataset_source_denied',
      `the server may not read ${name}: let its credentials read ` +
        (name.endsWith('/')
          ? 'and list the folder (s3:GetObject, s3:ListBucket)'
          : 'the object (s3:GetObject)'),
      options,
    );
  if (code === 'precondition_failed')
    return new ZerofleetError('dataset_source_changed', `${name} was changed while it was read`, options);
  return typed;
}
