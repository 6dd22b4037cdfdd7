/** Program of an agent with test timing and fake ranks; argv: directory, Redis, object store, slots, timing (JSON). */
import { join } from 'node:path';
import { loadConfig } from '../../platform/config/config.js';
import { createLogger } from '../../platform/logging/logging.js';
import { startWorker } from '../agent/start.js';
import { PROGRAMS, TEST_TIMING } from './fleet.js';

const [dir = '', redisUrl = '', objectStoreUrl = '', slots = '4', timing = '{}'] = process.argv.slice(2);

const worker = await startWorker({
  config: loadConfig({ ZEROFLEET_DATA_DIR: join(dir, 'data'), ZEROFLEET_SLOTS: slots }),
  redisUrl,
  objectStoreUrl,
  log: createLogger({ level: 'silent', name: 'agent' }),
  timing: { ...TEST_TIMING, ...JSON.parse(timing) },
  programs: PROGRAMS.fake,
});
process.once('SIGTERM', () => void worker.close().then(() => process.exit(0)));
process.send?.('ready');
