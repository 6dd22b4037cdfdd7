import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { ZerofleetError } from '../../contracts/index.js';
import { redisAddress } from '../config/redis-address.js';

const LOOPBACK = '127.0.0.1';

/**
 * Returns the address of this machine on the route to Redis, at which other machines with the same Redis can reach it.
 * It is loopback if Redis is on this machine. Sends nothing.
 * @throws ZerofleetError `invalid_configuration` when there is no route
 */
export async function addressTowards(redisUrl: string): Promise<string> {
  const { server } = redisAddress(redisUrl);
  if (server.kind === 'socket') return LOOPBACK;
  const nodes = server.kind === 'single' ? [server.node] : server.nodes;
  for (const { host, port } of nodes) {
    for (const family of ['udp4', 'udp6'] as const) {
      const address = await localAddress(family, host, port);
      if (address !== null) return address;
    }
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
