import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ChildProgram } from '../../ops/stack/child-program.js';
import { programPath } from '../../platform/process/programs.js';
import { startEmbeddedRedis } from '../../platform/redis/embedded.js';
import { type JobStore, openJobStore } from '../../state/index.js';

export interface ApiStack {
  url: string;
  /** Process id of the API server. */
  api_pid: number;
  redis_url: string;
  store: JobStore;
  /** Headers with a key that allows a million requests per minute. */
  headers: Record<string, string>;
  /** Starts a worker with two slots; resolves when it accepts jobs. */
  startWorker(): Promise<void>;
  close(): Promise<void>;
}

const KEY = 'benchmark-key-0123456789abcdef';
const REQUESTS_PER_MINUTE = 1_000_000;

/** Redis that syncs each write, as in production, an API server in its own process, and no worker. */
export async function startApiStack(): Promise<ApiStack> {
  const dir = await mkdtemp(join(tmpdir(), 'zf-bench-api-'));
  const redis = await startEmbeddedRedis({ dir: join(dir, 'redis') });
  const objects = join(dir, 'objects');
  await mkdir(objects);
  const env = {
    ZEROFLEET_REDIS_URL: redis.url,
    ZEROFLEET_OBJECT_STORE: pathToFileURL(objects).href,
    ZEROFLEET_LOG_LEVEL: 'warn',
    ZEROFLEET_PORT: '0',
  };
  const store = await openJobStore({ url: redis.url });
  await store.putApiKey(KEY, {
    name: 'benchmark',
    scopes: ['admin', 'operator'],
    requests_per_minute: REQUESTS_PER_MINUTE,
  });
  const api = spawn(process.execPath, [programPath('api/main')], {
    env: { ...process.env, ...env, ZEROFLEET_DATA_DIR: join(dir, 'api') },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const url = await readyUrl(api);
  const workers: ChildProgram[] = [];
  return {
    url,
    api_pid: api.pid as number,
    redis_url: redis.url,
    store,
    headers: { authorization: `Bearer ${KEY}` },
    startWorker: async () => {
      const program = programPath('worker/agent/main');
      const more = { ZEROFLEET_SLOTS: '2', ZEROFLEET_DATA_DIR: join(dir, 'worker') };
      workers.push(await ChildProgram.start({ name: 'worker', program, env: { ...env, ...more } }));
    },
    close: async () => {
      for (const worker of workers) await worker.stop();
      api.kill('SIGTERM');
      if (api.exitCode === null) await once(api, 'exit');
      await store.close();
      await redis.stop();
      await rm(dir, { recursive: true });
    },
  };
}

async function readyUrl(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error('the program has no output');
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /^ready (http:\S+)$/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error('the API server ended while it started');
}

interface Peer {
  url: string;
  close(): Promise<void>;
}

/** A Fastify server with one route that returns `answer`, in its own process. */
export function startBareServer(answer: object): Promise<Peer> {
  return startPeer('bare-fastify', answer);
}

/** A Fastify server with one route that adds to a queue. */
export function startBareAdd(redisUrl: string): Promise<Peer> {
  return startPeer('bare-add', { redis_url: redisUrl });
}

async function startPeer(name: string, settings: object): Promise<Peer> {
  const child = fork(fileURLToPath(new URL(`../peers/${name}.js`, import.meta.url)), [], { execArgv: [] });
  child.send(settings);
  const [{ url }] = (await once(child, 'message')) as [{ url: string }];
  const close = async () => {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };
  return { url, close };
}
