/** The API as a program of its own: configuration from the environment, until SIGTERM or SIGINT. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ZerofleetError } from '../contracts/index.js';
import { type Config, loadConfig } from '../platform/config/config.js';
import { createLogger } from '../platform/logging/logging.js';
import { startApi } from './server.js';

async function main(): Promise<void> {
  const config = loadConfig(process.env);
  const log = createLogger({ level: config.log_level, name: 'api' });
  const server = await startApi({
    config,
    redisUrl: requireRedis(config),
    objectStoreUrl: config.object_store ?? pathToFileURL(join(config.data_dir, 'objects')).href,
    log,
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      log.info({ signal }, 'shutting down');
      server.close().catch((error: unknown) => {
        log.fatal({ err: error }, 'shutdown failed');
        process.exit(1);
      });
    });
  }
  const { url, firstKey } = server;
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
