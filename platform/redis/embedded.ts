/**
 * Redis of the embedded stack: a private child process on a unix socket that only this user can open. It has
 * an append-only file, so that acknowledged writes survive SIGKILL of all processes. It ends with its parent
 * in all cases.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ZerofleetError } from '../../contracts/index.js';
import type { Logger } from '../logging/logging.js';
import { connectRedis, disconnectRedis } from './connect.js';
import { endWithParent } from './end-with-parent.js';
import { findRedisServer } from './server-program.js';
import { removeSocketDirectory, socketPath } from './socket-path.js';

const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 10_000;
const POLL_MS = 10;
const OWNER_FILE = 'owner.json';

interface EmbeddedRedisOptions {
  /** Directory of its files; created if missing. One server at a time may use it. */
  dir: string;
  /**
   * `always` (the default): acknowledged writes survive a crash of the machine. `no`: they survive a crash of
   * all processes. (Redis' `everysec` does not guarantee even that: during a slow sync it acknowledges before
   * it has written.)
   */
  fsync?: 'always' | 'no';
  log?: Logger;
}

export interface EmbeddedRedis {
  /** `unix:///…` for `connectRedis` and `openJobStore`. */
  readonly url: string;
  readonly pid: number;
  /** Resolves when the process has exited for any reason. */
  readonly exited: Promise<void>;
  /** Flushes all data and ends the process. Idempotent. */
  stop(): Promise<void>;
}

/** Owner of a server, recorded in its directory while it runs. */
interface Owner {
  pid: number;
  redis_pid: number;
  socket: string;
}

/**
 * Starts the server and waits until it serves.
 * @throws ZerofleetError `redis_server_missing`, `job_store_unavailable` (it did not start),
 * `invalid_configuration` (the directory is used by a live process)
 */
export async function startEmbeddedRedis(options: EmbeddedRedisOptions): Promise<EmbeddedRedis> {
  const program = findRedisServer();
  await mkdir(options.dir, { recursive: true, mode: 0o700 });
  // The path that the server reports, without symbolic links.
  const dir = await realpath(options.dir);
  await takeOver(dir);
  const socket = await socketPath(dir);
  await rm(socket, { force: true });

  const child = spawn(program.path, serverArguments(dir, socket, options.fsync ?? 'always'), {
    argv0: program.argv0,
    cwd: dir,
    // A separate process group: Ctrl-C in a terminal ends the parent, which still needs Redis during its
    // shutdown.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = collectOutput(child);
  const exited = once(child, 'close').then(
    () => undefined,
    () => undefined,
  );
  const url = urlOf(socket);
  const pid = child.pid ?? 0;
  if (pid !== 0) endWithParent(pid, exited);
  try {
    const owner: Owner = { pid: process.pid, redis_pid: pid, socket };
    await writeFile(join(dir, OWNER_FILE), JSON.stringify(owner));
    await untilServing(url, child, exited, output);
  } catch (error) {
    child.kill('SIGKILL');
    await exited;
    await removeOwnerFiles(dir, pid, socket);
    throw error;
  }
  options.log?.info({ pid, socket }, 'redis started');

  let stopping: Promise<void> | undefined;
  return {
    url,
    pid,
    exited,
    stop: () => {
      stopping ??= stopChild(child, exited).then(() => removeOwnerFiles(dir, pid, socket));
      return stopping;
    },
  };
}

function serverArguments(dir: string, socket: string, fsync: string): string[] {
  return Object.entries({
    port: '0',
    unixsocket: socket,
    unixsocketperm: '700',
    dir,
    appendonly: 'yes',
    appendfsync: fsync,
    // Evicting keys would lose jobs; exhausted memory must be an error instead.
    'maxmemory-policy': 'noeviction',
    save: '',
    daemonize: 'no',
    loglevel: 'warning',
  }).flatMap(([name, value]) => [`--${name}`, value]);
}

/**
 * Takes over a directory. Two servers on one append-only file would destroy it: a live owner is an error; an
 * orphaned server, whose owner was killed, is stopped first.
 */
async function takeOver(dir: string): Promise<void> {
  const owner = await readOwner(dir);
  if (!owner || !(await isServing(owner, dir))) return;
  if (isAlive(owner.pid)) {
    throw new ZerofleetError(
      'invalid_configuration',
      `${dir} is used by process ${owner.pid}: stop that one, or set another ZEROFLEET_DATA_DIR`,
    );
  }
  process.kill(owner.redis_pid, 'SIGTERM');
  const deadline = Date.now() + STOP_TIMEOUT_MS;
  while (isAlive(owner.redis_pid)) {
    if (Date.now() > deadline) process.kill(owner.redis_pid, 'SIGKILL');
    await sleep(POLL_MS);
  }
}

/** Removes the files of a running server, unless another owner has taken over. */
async function removeOwnerFiles(dir: string, redisPid: number, socket: string): Promise<void> {
  if ((await readOwner(dir))?.redis_pid !== redisPid) return;
  await rm(join(dir, OWNER_FILE), { force: true });
  await removeSocketDirectory(socket, dir);
}

async function readOwner(dir: string): Promise<Owner | null> {
  try {
    return JSON.parse(await readFile(join(dir, OWNER_FILE), 'utf8')) as Owner;
  } catch {
    // No owner, or one whose writer was interrupted before its server started.
    return null;
  }
}

/**
 * Returns whether the server that `owner` started still runs on `dir`. The server itself is asked, because
 * process ids are reused and an unrelated process must never be killed.
 */
async function isServing(owner: Owner, dir: string): Promise<boolean> {
  if (!isAlive(owner.redis_pid)) return false;
  const redis = await connectRedis(urlOf(owner.socket), 'commands').catch(() => null);
  if (!redis) return false;
  try {
    const [, itsDir] = (await redis.config('GET', 'dir')) as string[];
    const info = await redis.info('server');
    return itsDir === dir && info.includes(`process_id:${owner.redis_pid}\r\n`);
  } finally {
    await disconnectRedis(redis);
  }
}

function urlOf(socket: string): string {
  return `unix://${encodeURI(socket)}`;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function collectOutput(child: ChildProcess): () => string {
  let text = '';
  const keep = (chunk: Buffer) => {
    text = (text + chunk.toString()).slice(-2000);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  child.on('error', (error) => {
    text += String(error);
  });
  return () => text.trim();
}

async function untilServing(
  url: string,
  child: ChildProcess,
  exited: Promise<void>,
  output: () => string,
): Promise<void> {
  let ended = false;
  void exited.then(() => {
    ended = true;
  });
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    try {
      return await disconnectRedis(await connectRedis(url, 'commands'));
    } catch (error) {
      if (ended || child.exitCode !== null || Date.now() > deadline) {
        throw new ZerofleetError('job_store_unavailable', `the embedded Redis did not start: ${output()}`, {
          cause: error,
        });
      }
    }
    await sleep(POLL_MS);
  }
}

async function stopChild(child: ChildProcess, exited: Promise<void>): Promise<void> {
  child.kill('SIGTERM');
  const force = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  await exited;
  clearTimeout(force);
}
