/**
 * Objects in buckets that the operator allows, on the server that the operator configures, as sources of datasets and
 * models. A URI is compared with the list literally, and has no influence on the server.
 */
import { parseS3Uri, type S3Uri, ZerofleetError } from '../contracts/index.js';
import { type ContentSource, readUri, type SourceFolder, type SourceObject } from './content-sources.js';
import { s3Server } from './object-store/s3/server.js';
import type { S3Source } from './object-store/s3/source.js';

/** Bucket, or a folder of one. */
export interface AllowedBucket {
  bucket: string;
  /** Empty, or ends in a slash. */
  prefix: string;
}

interface DatasetSourcesOptions {
  allowed: readonly AllowedBucket[];
  /** Endpoint of the object store. */
  s3Endpoint: string | null;
}

/** Finds and lists objects of the allowed buckets. */
export class DatasetSources implements ContentSource {
  private source: Promise<S3Source> | null = null;

  constructor(private readonly options: DatasetSourcesOptions) {}

  async find(text: string): Promise<SourceObject> {
    return (await this.open()).find(this.allowed(text, (uri) => uri.key));
  }

  async list(text: string): Promise<SourceFolder> {
    const uri = text.replace(/\/$/, '');
    // Either all objects of the folder are allowed, or the folder is not.
    const folder = this.allowed(uri, ({ key }) => `${key}/`);
    const names = await (await this.open()).list(folder);
    return { uri, names, find: (name) => this.find(`${uri}/${name}`) };
  }

  /** @param whole selects the part of the URI that must be allowed */
  private allowed(text: string, whole: (uri: S3Uri) => string): S3Uri {
    const uri = readUri(text, parseS3Uri);
    const { bucket } = uri;
    const isInside = this.options.allowed.some(
      (entry) => entry.bucket === bucket && whole(uri).startsWith(entry.prefix),
    );
    if (!isInside) throw refused(text, uri);
    return uri;
  }

  /** Idempotent. */
  async close(): Promise<void> {
    if (this.source) (await this.source).close();
  }

  private open(): Promise<S3Source> {
    // The SDK is large; programs that read no bucket do not load it.
    this.source ??= import('./object-store/s3/source.js').then(
      ({ S3Source }) => new S3Source(s3Server(this.options.s3Endpoint)),
    );
    return this.source;
  }
}

/**
 * Refuses sources inside the object store: otherwise every client that may register datasets could read the
 * data of all projects.
 * @throws ZerofleetError `invalid_configuration` when the store lies in an allowed bucket
 */
export function refuseOwnStore(allowed: readonly AllowedBucket[], objectStoreUrl: string): void {
  if (!objectStoreUrl.startsWith('s3://')) return;
  const { hostname: bucket, pathname } = new URL(objectStoreUrl);
  const prefix = pathname.replace(/^\/+|\/+$/g, '');
  const own = prefix === '' ? '' : `${prefix}/`;
  const both = allowed.find(
    (entry) => entry.bucket === bucket && (own.startsWith(entry.prefix) || entry.prefix.startsWith(own)),
  );
  if (both === undefined) return;
  throw new ZerofleetError(
    'invalid_configuration',
    `ZEROFLEET_DATASET_BUCKETS allows ${both.bucket}/${both.prefix}, where the object store itself is: ` +
      'datasets of one project could be read by all others. Use another bucket, or folders beside each other',
  );
}

function refused(text: string, { bucket }: S3Uri): ZerofleetError {
  return new ZerofleetError(
    'dataset_uri_refused',
    `nothing may be copied from ${text}: ask an operator to add ${bucket}, or a folder of it, to ` +
      'ZEROFLEET_DATASET_BUCKETS, or upload the content',
  );
}
