import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import t from 'tap';
import { UsageError } from './options.js';
import { explainStartError } from './program.js';

t.test('a port in use is explained without a stack', async (t) => {
  const first = createServer().listen(0, '127.0.0.1');
  await once(first, 'listening');
  t.teardown(() => first.close());
  const { port } = first.address() as AddressInfo;
  const [error] = await once(createServer().listen(port, '127.0.0.1'), 'error').catch((error) => [error]);
  t.match(
    explainStartError(error),
    new RegExp(`^port ${port} is in use: .*ZEROFLEET_PORT=0 takes any free one$`),
  );
});

t.test('other errors', async (t) => {
  t.match(
    explainStartError(Object.assign(new Error('listen EACCES'), { code: 'EACCES', port: 80 })),
    /^port 80 may not/,
  );
  t.equal(explainStartError(new UsageError('usage')), 'usage');
  t.match(explainStartError(new Error('unknown')), /unknown\n +at /);
});
