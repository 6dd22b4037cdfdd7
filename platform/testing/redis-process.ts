/** Redis servers and sentinels on loopback ports, for tests of a failover. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { endWithParent } from '../redis/end-with-parent.js';
import { findRedisServer } from '../redis/server-program.js';
import { freePort } from './free-port.js';

/** Settings whose names occur once; a list has several values of one name. */
type RedisSettings = Readonly<Record<string, string | number | readonly string[]>>;

/** Acknowledged writes survive a kill: the kernel has them. */
const SERVER: RedisSettings = {
  appendonly: 'yes',
  appendfsync: 'no',
  save: '""',
  'maxmemory-policy': 'noeviction',
  // A killed server comes back within seconds.
  'repl-diskless-sync-delay': 0,
  'repl-ping-replica-period': 1,
};

export class RedisProcess {
  private child: ChildProcess | null = null;
  /** Resolves when the process has exited. */
  exited: Promise<unknown> = Promise.resolve();

  private constructor(
    readonly port: number,
    private readonly dir: string,
    private readonly mode: readonly string[],
  ) {}

  /** Starts a server; Redis may rewrite its settings. @param root a directory for the directories of all processes */
  static async server(root: string, settings: RedisSettings = {}): Promise<RedisProcess> {
    return RedisProcess.create(root, { ...SERVER, ...settings }, []);
  }

  static async sentinel(root: string, settings: RedisSettings): Promise<RedisProcess> {
    return RedisProcess.create(root, settings, ['--sentinel']);
  }

  private static async create(
    root: string,
    settings: RedisSettings,
    mode: readonly string[],
  ): Promise<RedisProcess> {
    const port = await freePort();
    const dir = join(root, String(port));
    await mkdir(dir);
    const lines = Object.entries({ port, bind: '127.0.0.1', dir, ...settings }).flatMap(([name, values]) =>
      [values].flat().map((value) => `${name} ${value}`),
    );
    await writeFile(join(dir, 'redis.conf'), `${lines.join('\n')}\n`);
    const made = new RedisProcess(port, dir, mode);
    made.start();
    return made;
  }

  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** Starts it again with the files that it left. */
  start(): void {
    const { path, argv0 } = findRedisServer();
    const child = spawn(path, [join(this.dir, 'redis.conf'), ...this.mode], {
      argv0,
      detached: true,
      stdio: 'ignore',
    });
    this.child = child;
    this.exited = once(child, 'exit');
    if (child.pid !== undefined)
      endWithParent(
        child.pid,
        this.exited.then(() => undefined),
      );
  }

  /** Ends it like a crash. */
  async kill(): Promise<void> {
    this.child?.kill('SIGKILL');
    await this.exited;
  }
}
