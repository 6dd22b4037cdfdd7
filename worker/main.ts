/** A worker machine's agent as a program of its own: configuration from the environment, until SIGTERM or SIGINT. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ZerofleetError } from '../contracts/index.js';
import { type Config, loadConfig } from '../platform/config/config.js';
import { createLogger } from '../platform/logging/logging.js';
import { startWorker } from './start.js';

/** Time for what is still being written, the log for one. */
const LINGER_MS = 1_000;

async function main(): Promise<void> {
  const config = loadConfig(process.env);
  const log = createLogger({ level: config.log_level, name: 'agent' });
  const worker = await startWorker({
    config,
    redisUrl: requireRedis(config),
    objectStoreUrl: config.object_store ?? pathToFileURL(join(config.data_dir, 'objects')).href,
    log,
  });
  const stop = (why: string) => {
    log.info({ why }, 'saving and handing back every job');
    worker.close().then(
      () => {
        // A parent's channel would keep this process alive.
        if (process.connected) process.disconnect();
        // So would a connection that was cut off, until TCP gives it up.
        setTimeout(() => process.exit(), LINGER_MS).unref();
      },
      (error: unknown) => {
        log.fatal({ err: error }, 'shutdown failed');
        process.exit(1);
      },
    );
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop(signal));
  if (process.send) {
    process.once('disconnect', () => stop('the parent is gone'));
    process.send({ kind: 'ready' });
  }
}

function requireRedis({ redis_url: url }: Config): string {
  if (url !== null) return url;
  throw new ZerofleetError(
    'invalid_configuration',
    'a worker alone needs ZEROFLEET_REDIS_URL; `npm start` brings a private Redis with it',
  );
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof ZerofleetError ? error.message : (error as Error).stack}\n`);
  process.exitCode = 1;
}
