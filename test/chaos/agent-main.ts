/**
 * A worker agent with short intervals, so that many leases expire in a minute of chaos. Everything else is the
 * production agent.
 */
import { objectStoreUrl, requireRedis } from '../../platform/config/stores.js';
import { runProgram } from '../../platform/process/run-program.js';
import { startWorker } from '../../worker/agent/start.js';
import { DEFAULT_TIMING } from '../../worker/shared/timing.js';

const quick = { attempts: 8, first_delay_ms: 50, max_delay_ms: 1_000 };

const timing = {
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
};

await runProgram('agent', async ({ config, log }) => {
  const redisUrl = requireRedis(config, 'a worker');
  return startWorker({ config, redisUrl, objectStoreUrl: objectStoreUrl(config), log, timing });
});
