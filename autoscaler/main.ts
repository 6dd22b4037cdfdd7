/** The autoscaler as a program of its own: configuration from the environment, until SIGTERM or SIGINT. */
import { ZerofleetError } from '../contracts/index.js';
import { loadConfig } from '../platform/config/config.js';
import { createLogger } from '../platform/logging/logging.js';
import { startAutoscaler } from './start.js';

async function main(): Promise<void> {
  const config = loadConfig(process.env);
  const log = createLogger({ level: config.log_level, name: 'autoscaler' });
  const autoscaler = await startAutoscaler({ config, log });
  const stop = (why: string) => {
    log.info({ why }, 'shutting down');
    autoscaler.close().then(
      () => {
        // A parent's channel would keep this process alive.
        if (process.connected) process.disconnect();
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

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof ZerofleetError ? error.message : (error as Error).stack}\n`);
  process.exit(1);
}
