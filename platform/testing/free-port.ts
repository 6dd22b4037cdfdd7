import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ports that Linux and macOS give to outgoing connections and to servers that ask for any port: none of these
 * takes one.
 */
const FIRST = 10_000;
const COUNT = 22_000;

let next = Math.floor(Math.random() * COUNT);

/** Returns a free port of loopback, each time another one. */
export async function freePort(): Promise<number> {
  const port = FIRST + (next++ % COUNT);
  const server = createServer().listen(port, '127.0.0.1');
  const isFree = await once(server, 'listening').then(
    () => true,
    () => false,
  );
  if (!isFree) return freePort();
  server.close();
  await once(server, 'close');
  return port;
}
