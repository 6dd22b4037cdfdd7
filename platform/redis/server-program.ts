import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ZerofleetError } from '../../contracts/index.js';

/** Program that acts as a Redis server when it is called with the name `argv0`. */
interface ServerProgram {
  path: string;
  argv0: string;
}

// Redis is one binary under several names and chooses its function by argv[0]. Debian's small package
// redis-tools has it as redis-check-rdb only, which avoids the system service that the package redis-server
// would start.
const NAMES = ['redis-server', 'valkey-server', 'redis-check-rdb', 'valkey-check-rdb'];
const FALLBACK_DIRS = ['/usr/bin', '/usr/local/bin', '/opt/homebrew/bin'];

/**
 * Finds a Redis server.
 * @param searchPath directories as in the variable PATH
 * @throws ZerofleetError `redis_server_missing`
 */
export function findRedisServer(searchPath: string = process.env.PATH ?? ''): ServerProgram {
  const dirs = [...searchPath.split(delimiter).filter(Boolean), ...FALLBACK_DIRS];
  for (const name of NAMES) {
    const path = dirs.map((dir) => join(dir, name)).find(isExecutable);
    if (path) return { path, argv0: 'redis-server' };
  }
  throw new ZerofleetError(
    'redis_server_missing',
    'no Redis server was found: install one (Debian, Ubuntu: redis-tools) or set ZEROFLEET_REDIS_URL',
  );
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
