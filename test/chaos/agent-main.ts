/** A worker agent with short periods, so that in a minute of chaos many leases run out. Everything else is the real one. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { loadConfig } from '../../platform/config/config.js';
import { createLogger } from '../../platform/logging/logging.js';
import { DEFAULT_TIMING } from '../../worker/attempt/timing.js';
import { startWorker } from '../../worker/start.js';

const quick = { attempts: 8, first_delay_ms: 50, max_delay_ms: 1_000 };

const config = loadConfig(process.env);
const worker = await startWorker({
  config,
  redisUrl: config.redis_url ?? '',
  objectStoreUrl: config.object_store ?? pathToFileURL(join(config.data_dir, 'objects')).href,
  log: createLogger({ level: config.log_level, name: 'agent' }),
  timing: {
    ...DEFAULT_TIMING,
    lease_ms: 5_000,
    stalled_interval_ms: 1_000,
    heartbeat_ms: 300,
    silence_ms: 6_000,
    comm_timeout_ms: 10_000,
    drain_ms: 20_000,
    hand_back_ms: 300,
    restart: { ...quick, attempts: Number.MAX_SAFE_INTEGER },
    storage: { ...quick, attempts: 60 },
    save: { periodic: quick, final: { ...quick, attempts: 60 } },
  },
});
function leave(): void {
  worker.close().then(
    () => process.exit(0),
    () => process.exit(1),
  );
}
process.once('SIGTERM', leave);
// Of those that have a channel to their parent.
process.once('disconnect', leave);
