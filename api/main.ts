/** Stand-alone API server. */
import { objectStoreUrl, requireRedis } from '../platform/config/stores.js';
import { runProgram } from '../platform/process/run-program.js';
import { startApi } from './server.js';

await runProgram('api', async ({ config, log }) => {
  const redisUrl = requireRedis(config, 'the API');
  const server = await startApi({ config, redisUrl, objectStoreUrl: objectStoreUrl(config), log });
  const { url, firstKey } = server;
  if (firstKey.isNew)
    process.stdout.write(`first API key (stored in ${firstKey.file}): ${firstKey.secret}\n`);
  process.stdout.write(`ready ${url}\n`);
  return server;
});
