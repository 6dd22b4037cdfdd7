import { networkInterfaces } from 'node:os';
import t from 'tap';
import { addressTowards } from './route.js';

t.test('a Redis on this machine is reached over loopback', async (t) => {
  t.equal(await addressTowards('redis://127.0.0.1:6379'), '127.0.0.1');
  t.equal(await addressTowards('redis://localhost:6379/2'), '127.0.0.1');
  t.equal(await addressTowards('unix:///run/redis.sock'), '127.0.0.1');
});

t.test('a remote Redis is reached from an address of this machine', async (t) => {
  // From the range for documentation: no such host exists, and no packet is sent.
  const own = Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address));
  const found = await addressTowards('redis://192.0.2.1:6379').catch((error: unknown) => error);
  // A machine without a route reports that.
  if (found instanceof Error) t.match(found, { code: 'invalid_configuration' });
  else t.ok(own.includes(String(found)), String(found));
});

t.test('a host without an address is reported as unreachable', async (t) => {
  await t.rejects(addressTowards('redis://no-such-host.invalid:6379'), {
    code: 'invalid_configuration',
    message: /ZEROFLEET_ADDRESS/,
  });
});
