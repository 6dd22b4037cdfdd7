import { createHash } from 'node:crypto';
import { lstat, mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ZerofleetError } from '../../contracts/index.js';

/** The kernel limits the path of a unix socket to 108 bytes with the closing zero, 104 on some systems. */
const MAX_PATH_BYTES = 103;
const NAME = 'redis.sock';

/**
 * Returns the socket path of the server with data in `dir`. The socket is in `dir`, or, if the path would be
 * too long, in a directory of this user under the system's temporary directory. The path is deterministic, so
 * that killed servers leave no files behind.
 * @throws ZerofleetError `invalid_configuration` when another user has created that directory
 */
export async function socketPath(dir: string): Promise<string> {
  const path = join(dir, NAME);
  if (Buffer.byteLength(path) <= MAX_PATH_BYTES) return path;
  const user = process.getuid?.() ?? 0;
  const hash = createHash('sha256').update(dir).digest('hex').slice(0, 16);
  const short = join(tmpdir(), `zf-redis-${user}-${hash}`);
  await mkdir(short, { recursive: true, mode: 0o700 });
  const made = await lstat(short);
  // The name is predictable: another user's directory there could redirect our commands to that user's
  // server.
  if (!made.isDirectory() || made.uid !== user || (made.mode & 0o077) !== 0) {
    throw new ZerofleetError(
      'invalid_configuration',
      `${short} is not a private directory of this user: remove it`,
    );
  }
  return join(short, NAME);
}

/** Removes the directory that `socketPath` created outside of `dir`, once the server has exited. */
export async function removeSocketDirectory(socket: string, dir: string): Promise<void> {
  if (dirname(socket) !== dir) await rm(dirname(socket), { recursive: true, force: true });
}
