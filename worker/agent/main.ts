/** Program of a worker's agent. On exit it saves and returns every job. */
import { objectStoreUrl, requireRedis } from '../../platform/config/stores.js';
import { runProgram } from '../../platform/process/run-program.js';
import { startWorker } from './start.js';

await runProgram('agent', async ({ config, log }) => {
  const redisUrl = requireRedis(config, 'a worker');
  return startWorker({ config, redisUrl, objectStoreUrl: objectStoreUrl(config), log });
});
