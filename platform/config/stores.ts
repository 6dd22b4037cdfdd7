import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ZerofleetError } from '../../contracts/index.js';
import type { Config } from './config.js';

/**
 * Returns the URL of Redis for a program without the embedded stack.
 * @param program its name in the error, e.g. 'a worker'
 * @throws ZerofleetError `invalid_configuration`
 */
export function requireRedis({ redis_url: url }: Config, program: string): string {
  if (url !== null) return url;
  throw new ZerofleetError(
    'invalid_configuration',
    `${program} alone needs ZEROFLEET_REDIS_URL; \`npm start\` brings a private Redis with it`,
  );
}

/** Returns the URL of the object store: the configured one, or a directory below the data directory. */
export function objectStoreUrl({ object_store, data_dir }: Config): string {
  return object_store ?? pathToFileURL(join(data_dir, 'objects')).href;
}
