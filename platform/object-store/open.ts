import { fileURLToPath } from 'node:url';
import { ZerofleetError } from '../../contracts/index.js';
import type { SessionCredentials } from '../../contracts/rank-protocol.js';
import { isKey } from './common/keys.js';
import type { ObjectStore } from './common/port.js';
import { FileStore } from './file/store.js';
import { s3Server } from './s3/server.js';

interface OpenObjectStoreOptions {
  /** Endpoint of an S3-compatible server (`ZEROFLEET_S3_ENDPOINT`); ignored for directories. */
  s3Endpoint?: string | null;
  /** Creates a missing directory; ignored for S3. */
  create?: boolean;
  /** Returns the current credentials, called before each request; null: the usual `AWS_*` sources. */
  credentials?: (() => SessionCredentials) | null;
}

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/**
 * Opens the store of a URL: `file:///directory` or `s3://bucket/prefix`. Credentials for S3 come from the
 * usual `AWS_*` sources unless given. It is not contacted yet; `check()` does that.
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
      // The SDK is large; programs with objects in a directory do not load it.
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

/**
 * Converts credentials for the SDK. An expiry in the distant past makes the SDK ask before each request,
 * regardless of clocks.
 */
function sdkCredentials(given: SessionCredentials) {
  return {
    accessKeyId: given.access_key_id,
    secretAccessKey: given.secret_access_key,
    sessionToken: given.session_token,
    expiration: new Date(0),
  };
}
