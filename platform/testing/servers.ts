/** What tests need that start servers. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const START_TIMEOUT_MS = 60_000;
const POLL_MS = 100;

/** A port of loopback on which nothing listens now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Tries until it works: a server that has just begun refuses. @throws the last error when the time to start is over */
export async function untilDone<T>(attempt: () => Promise<T>): Promise<T> {
  for (const deadline = Date.now() + START_TIMEOUT_MS; ; await sleep(POLL_MS)) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}
