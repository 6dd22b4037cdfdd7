import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { programPath } from '../../platform/process/programs.js';

const program = programPath('ops/recover/main');

t.test('the program runs stand-alone, as `zerofleet recover` and images start it', (t) => {
  const dataDir = t.testdir({ objects: {} });
  const env = {
    PATH: process.env.PATH,
    ZEROFLEET_DATA_DIR: dataDir,
    ZEROFLEET_OBJECT_STORE: `file://${join(dataDir, 'objects')}`,
    // No server listens there.
    ZEROFLEET_REDIS_URL: `unix://${join(dataDir, 'redis.sock')}`,
  };
  const { status, stderr } = spawnSync(process.execPath, [program], {
    env,
    encoding: 'utf8',
    timeout: 60_000,
  });
  t.equal(status, 1, 'without Redis it fails with a message');
  t.match(stderr, /Redis is not available/);
  t.end();
});
