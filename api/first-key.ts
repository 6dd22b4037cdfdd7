import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../platform/config/config.js';
import type { Logger } from '../platform/logging/logging.js';
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

const RETRY_MS = 1_000;

/** Returns the first admin key: the configured one, else the one stored by an earlier start, else a new one. */
export async function readFirstKey(config: Config): Promise<FirstKey> {
  return config.api_key === null ? storedKey(config.data_dir) : fromConfig(config.api_key);
}

/**
 * Makes the job store accept the key. Resolves after the first attempt; if Redis is away, attempts go on in the
 * background.
 */
export async function acceptFirstKey(
  keys: Pick<ApiKeys, 'putApiKey'>,
  { secret }: FirstKey,
  log: Logger,
): Promise<{ close(): Promise<void> }> {
  const closing = new AbortController();
  const accept = async (): Promise<boolean> => {
    try {
      await keys.putApiKey(secret, { name: 'first key', scopes: ['admin', 'operator'], builtin: true });
      return true;
    } catch (error) {
      log.warn({ err: error }, 'the first key is not accepted yet');
      return false;
    }
  };
  const keepTrying = async () => {
    while (!closing.signal.aborted && !(await accept()))
      await sleep(RETRY_MS, undefined, { signal: closing.signal }).catch(() => undefined);
  };
  const accepted = (await accept()) ? Promise.resolve() : keepTrying();
  return {
    close() {
      closing.abort();
      return accepted;
    },
  };
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
