import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';

const program = fileURLToPath(new URL('main.js', import.meta.url));

t.test('the program runs when it is started by itself, as `zerofleet recover` and images do', (t) => {
  const data_dir = t.testdir({ objects: {} });
  const env = {
    PATH: process.env.PATH,
    ZEROFLEET_DATA_DIR: data_dir,
    ZEROFLEET_OBJECT_STORE: `file://${join(data_dir, 'objects')}`,
    // Nobody listens there.
    ZEROFLEET_REDIS_URL: `unix://${join(data_dir, 'redis.sock')}`,
  };
  const { status, stderr } = spawnSync(process.execPath, [program], {
    env,
    encoding: 'utf8',
    timeout: 60_000,
  });
  t.equal(status, 1, 'without Redis it fails, and says so');
  t.match(stderr, /Redis is not available/);
  t.end();
});
