/** A worker machine's agent as a program of its own: it saves and hands back every job when it ends. */
import { objectStoreUrl, requireRedis } from '../platform/config/stores.js';
import { runProgram } from '../platform/process/run-program.js';
import { startWorker } from './start.js';

await runProgram('agent', async ({ config, log }) => {
  const redisUrl = requireRedis(config, 'a worker');
  return startWorker({ config, redisUrl, objectStoreUrl: objectStoreUrl(config), log });
});
