import { createHash } from 'node:crypto';
import { lstat, mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ZerofleetError } from '../../contracts/index.js';

/**
 * The kernel's limit for the path of a unix socket is 108 bytes with the closing zero, 104 on some systems.
 */
const MAX_PATH_BYTES = 103;
const NAME = 'redis.sock';

/**
 * Path of the socket of the server that keeps its data in `dir`: there, or, when the path would be too long,
 * in a directory of this user under the system's temporary directory. The same one each time, so that kills
 * leave no litter behind.
 * @throws ZerofleetError `invalid_configuration` when somebody else has made that directory
 */
export async function placeForSocket(dir: string): Promise<string> {
  const path = join(dir, NAME);
  if (Buffer.byteLength(path) <= MAX_PATH_BYTES) return path;
  const user = process.getuid?.() ?? 0;
  const hash = createHash('sha256').update(dir).digest('hex').slice(0, 16);
  const short = join(tmpdir(), `zf-redis-${user}-${hash}`);
  await mkdir(short, { recursive: true, mode: 0o700 });
  const made = await lstat(short);
  // The name can be guessed: a directory that another user put there could hand our commands to that user's
  // server.
  if (!made.isDirectory() || made.uid !== user || (made.mode & 0o077) !== 0) {
    throw new ZerofleetError(
      'invalid_configuration',
      `${short} is not a private directory of this user: remove it`,
    );
  }
  return join(short, NAME);
}

/** Removes what `placeForSocket` made outside of `dir`, once the server has ended. */
export async function leaveSocketPlace(socket: string, dir: string): Promise<void> {
  if (dirname(socket) !== dir) await rm(dirname(socket), { recursive: true, force: true });
}
