import { fileURLToPath } from 'node:url';
import { ZerofleetError } from '../../contracts/index.js';
import type { SessionCredentials } from '../../contracts/rank-protocol.js';
import { isKey } from './common/keys.js';
import type { ObjectStore } from './common/port.js';
import { FileStore } from './file/store.js';
import { s3Server } from './s3/server.js';

export interface OpenObjectStoreOptions {
  /** Server that is not AWS (`ZEROFLEET_S3_ENDPOINT`); ignored for directories. */
  s3Endpoint?: string | null;
  /** Make a missing directory; ignored for S3. */
  create?: boolean;
  /** The newest credentials, asked for before each request; null: the usual `AWS_*` places. */
  credentials?: (() => SessionCredentials) | null;
}

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/**
 * Opens the store that a URL names: `file:///directory` or `s3://bucket/prefix`. Credentials for S3 come from
 * the usual `AWS_*` places unless given. It is not contacted yet; `check()` does that.
 * @throws ZerofleetError `invalid_configuration`; ObjectStoreError when a directory cannot be used
 */
export async function openObjectStore(
  url: string,
  { s3Endpoint, create, credentials }: OpenObjectStoreOptions = {},
): Promise<ObjectStore> {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed?.protocol === 'file:' && parsed.hostname === '') {
    return FileStore.open(fileURLToPath(parsed), { create });
  }
  if (parsed?.protocol === 's3:') {
    const bucket = parsed.hostname;
    const prefix = parsed.pathname.replace(/^\/+|\/+$/g, '');
    if (BUCKET.test(bucket) && (prefix === '' || isKey(prefix))) {
      // The SDK is large; programs that keep their objects in a directory start without it.
      const { S3Store } = await import('./s3/store.js');
      const given = credentials ? { credentials: async () => sdkCredentials(credentials()) } : {};
      return new S3Store({ bucket, prefix, ...s3Server(s3Endpoint), ...given });
    }
  }
  throw new ZerofleetError(
    'invalid_configuration',
    'an object store is file:///directory or s3://bucket/prefix (a prefix of letters, digits, ._=- and slashes)',
  );
}

/** As the SDK wants them. What has expired long ago it asks for before each request, whatever clocks say. */
function sdkCredentials(given: SessionCredentials) {
  return {
    accessKeyId: given.access_key_id,
    secretAccessKey: given.secret_access_key,
    sessionToken: given.session_token,
    expiration: new Date(0),
  };
}
