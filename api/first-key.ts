import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../platform/config/config.js';
import type { ApiKeys } from '../state/index.js';

/** File below the data directory that stores the first key; readable only by its owner. */
const KEY_FILE = 'api-key';

export interface FirstKey {
  secret: string;
  /** True if the key was just created and should be printed once. */
  isNew: boolean;
  /** File of the key; null if it came from `ZEROFLEET_API_KEY`. */
  file: string | null;
}

/** Ensures that an admin key is accepted: the configured one, else the one stored by an earlier start, else a new one. */
export async function acceptFirstKey(keys: Pick<ApiKeys, 'putApiKey'>, config: Config): Promise<FirstKey> {
  const key = config.api_key === null ? await storedKey(config.data_dir) : fromConfig(config.api_key);
  await keys.putApiKey(key.secret, { name: 'first key', scopes: ['admin', 'operator'], builtin: true });
  return key;
}

function fromConfig(secret: string): FirstKey {
  return { secret, isNew: false, file: null };
}

async function storedKey(dataDir: string): Promise<FirstKey> {
  const file = join(dataDir, KEY_FILE);
  await mkdir(dataDir, { recursive: true });
  const secret = `zf_${randomBytes(32).toString('base64url')}`;
  try {
    // Exclusive: of several processes that start concurrently, one creates the key and the others read it.
    await writeFile(file, `${secret}\n`, { flag: 'wx', mode: 0o600 });
    return { secret, isNew: true, file };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return { secret: (await readFile(file, 'utf8')).trim(), isNew: false, file };
  }
}
