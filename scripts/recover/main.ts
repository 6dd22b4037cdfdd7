/** `npm run recover`: rebuilds the records of an empty Redis from the object store and prints what it put back. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { JOB_STATES } from '../../contracts/index.js';
import { type Config, loadConfig } from '../../platform/config.js';
import { openJobStore } from '../../platform/job-store/index.js';
import { createLogger } from '../../platform/logging.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import { type Recovered, recover } from '../../platform/recovery/recover.js';
import { startEmbeddedRedis } from '../../platform/redis/embedded.js';
import { explainStartError } from '../embedded/main.js';

/** Runs it with the configuration that the stack has; sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  try {
    if (args.length > 0)
      throw new Error(`usage: npm run recover (no arguments; ${args.join(' ')} is unknown)`);
    process.stdout.write(summary(await recoverWith(loadConfig(process.env))));
  } catch (error) {
    process.stderr.write(`${explainStartError(error)}\n`);
    process.exitCode = 1;
  }
}

async function recoverWith(config: Config): Promise<Recovered> {
  const log = createLogger({ level: config.log_level, name: 'recover', destination: process.stderr });
  const closers: (() => Promise<void>)[] = [];
  try {
    let redis_url = config.redis_url;
    if (redis_url === null) {
      // The private Redis of the stack, which is not running now.
      const redis = await startEmbeddedRedis({ dir: join(config.data_dir, 'redis'), log });
      closers.push(() => redis.stop());
      redis_url = redis.url;
    }
    const url = config.object_store ?? pathToFileURL(join(config.data_dir, 'objects')).href;
    const objects = await openObjectStore(url, {
      s3Endpoint: config.s3_endpoint,
      create: config.object_store === null,
    });
    closers.push(() => objects.close());
    const store = await openJobStore({ url: redis_url, log });
    closers.push(() => store.close());
    const onUnusable = (key: string, error: Error) => log.warn({ key, err: error }, 'left out');
    return await recover({ store, objects, onUnusable });
  } finally {
    for (const close of closers.toReversed()) await close();
  }
}

function summary({ datasets, models, jobs, checkpoints, unaccepted, unusable }: Recovered): string {
  const states = JOB_STATES.flatMap((state) => (jobs[state] ? [`${jobs[state]} ${state}`] : []));
  const lines = [
    `recovered ${datasets} datasets, ${models} models, ${checkpoints} checkpoints`,
    `jobs: ${states.join(', ') || 'none'}`,
  ];
  if (unaccepted > 0) lines.push(`${unaccepted} job documents left out that were never acknowledged`);
  if (unusable > 0) lines.push(`${unusable} documents left out that can't be read; the log names them`);
  return `${lines.join('\n')}\n`;
}
