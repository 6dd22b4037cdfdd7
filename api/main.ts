/**
 * The API as a program: configuration from the environment, until SIGTERM or SIGINT. Under a parent that holds a channel to
 * it, it reports over the channel when it serves, and ends when the parent is gone.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ZerofleetError } from '../contracts/index.js';
import { type Config, loadConfig } from '../platform/config.js';
import { createLogger } from '../platform/logging.js';
import { type ApiServer, startApi } from './server.js';

async function main(): Promise<void> {
  const config = loadConfig(process.env);
  const log = createLogger({ level: config.log_level, name: 'api' });
  const server = await startApi({
    config,
    redisUrl: requireRedis(config),
    objectStoreUrl: config.object_store ?? pathToFileURL(join(config.data_dir, 'objects')).href,
    log,
  });
  const stop = (why: string) => {
    log.info({ why }, 'shutting down');
    server.close().then(
      // An open channel keeps the process alive.
      () => process.disconnect?.(),
      (error: unknown) => {
        log.fatal({ err: error }, 'shutdown failed');
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', () => stop('SIGTERM'));
  process.once('SIGINT', () => stop('SIGINT'));
  process.once('disconnect', () => stop('the parent process is gone'));
  announce(server);
}

/** Says that requests are served, and the first key in the one start that made it. */
function announce({ url, firstKey }: ApiServer): void {
  if (process.send !== undefined) {
    process.send({ kind: 'ready', url });
    return;
  }
  if (firstKey.isNew) {
    process.stdout.write(`first API key (kept in ${firstKey.file}): ${firstKey.secret}\n`);
  }
  process.stdout.write(`ready ${url}\n`);
}

function requireRedis({ redis_url: url }: Config): string {
  if (url !== null) return url;
  throw new ZerofleetError(
    'invalid_configuration',
    'the API alone needs ZEROFLEET_REDIS_URL; `npm start` brings a private Redis with it',
  );
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof ZerofleetError ? error.message : (error as Error).stack}\n`);
  process.exit(1);
}
