import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectRedis, disconnectRedis } from '../redis/connect.js';
import { startEmbeddedRedis } from '../redis/embedded.js';

export interface TestRedis {
  /** `unix:///…` */
  readonly url: string;
  readonly pid: number;
  /** Kills it like a crash (SIGKILL); `start` restores its durable data. */
  kill(): Promise<void>;
  /** Starts it again on the same socket and files after `kill`. */
  start(): Promise<void>;
  /**
   * Loses all data at once, like a server that restarts with an empty disk; connections stay.
   * @param options `but`: text in the names of keys to keep
   */
  forget(options?: { but?: string }): Promise<void>;
  /**
   * Adds a replica that misses all later writes.
   * @returns a function that fails over to it, with the same address; connections stay
   */
  leaveReplicaBehind(): Promise<() => Promise<void>>;
  /** Ends it and removes its files. Idempotent. */
  stop(): Promise<void>;
}

const FORGET_BUT = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  if not key:find(ARGV[1], 1, true) then redis.call('DEL', key) end
end`;

/** Starts a private Redis in a temporary directory. */
export async function startTestRedis(): Promise<TestRedis> {
  const dir = await mkdtemp(join(tmpdir(), 'zf-test-'));
  // The kernel's cache survives kill(), so syncs would only slow the tests down. `everysec` is no
  // alternative: during a slow sync Redis acknowledges before it has written.
  let server = await startEmbeddedRedis({ dir, fsync: 'no' });
  return {
    url: server.url,
    get pid() {
      return server.pid;
    },
    async kill() {
      process.kill(server.pid, 'SIGKILL');
      await server.exited;
    },
    async start() {
      server = await startEmbeddedRedis({ dir, fsync: 'no' });
    },
    async forget({ but } = {}) {
      const redis = await connectRedis(server.url, 'commands');
      if (but === undefined) await Promise.all([redis.flushall(), redis.function('FLUSH')]);
      else await redis.eval(FORGET_BUT, 0, but);
      await disconnectRedis(redis);
    },
    async leaveReplicaBehind() {
      const redis = await connectRedis(server.url, 'commands');
      const keys = await redis.keys('*');
      const kept = await Promise.all(
        keys.map(
          async (key) => [key, await redis.dumpBuffer(key), Math.max(0, await redis.pttl(key))] as const,
        ),
      );
      return async () => {
        await Promise.all([redis.flushall(), redis.function('FLUSH')]);
        for (const [key, value, ttlMs] of kept) if (value) await redis.restore(key, ttlMs, value);
        await disconnectRedis(redis);
      };
    },
    async stop() {
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
