import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { ZerofleetError } from '../../contracts/index.js';
import { redisOptions } from './connect.js';

const LOOPBACK = '127.0.0.1';

/**
 * Returns the address of this machine on the route to Redis, at which other machines with the same Redis can
 * reach it; loopback when Redis is on this machine. Sends nothing.
 * @throws ZerofleetError `invalid_configuration` when there is no route
 */
export async function addressTowards(redisUrl: string): Promise<string> {
  const { path, host, port } = redisOptions(redisUrl, 'commands');
  if (path !== undefined || host === undefined) return LOOPBACK;
  for (const family of ['udp4', 'udp6'] as const) {
    const address = await localAddress(family, host, port ?? 0);
    if (address !== null) return address;
  }
  throw new ZerofleetError(
    'invalid_configuration',
    'no network address of this machine leads to Redis; say in ZEROFLEET_ADDRESS where other workers reach this one',
  );
}

/** Connecting a datagram socket only consults the routing table. */
async function localAddress(family: 'udp4' | 'udp6', host: string, port: number): Promise<string | null> {
  const socket = createSocket(family);
  try {
    socket.connect(port, host);
    await once(socket, 'connect');
    return socket.address().address;
  } catch {
    return null;
  } finally {
    socket.close();
  }
}
