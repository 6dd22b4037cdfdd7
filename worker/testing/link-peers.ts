/**
 * Peers of links for tests: a leader and a member without what comes after the join, and a wire that can be listened
 * to.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { pipeline } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';
import type { Test } from 'tap';
import { createLogger } from '../../platform/logging/logging.js';
import type { WorldPlan } from '../../state/index.js';
import { Link } from '../agent/link/link.js';
import { connectToLeader, serverOptions } from '../agent/link/tls.js';

type WorldAtLeader = Pick<WorldPlan, 'world_id' | 'token' | 'leader'>;

/** World record of a member whose leader listens at this port. */
export const worldAtPort = (port: number, token: string, worldId = 'w1'): WorldAtLeader => ({
  world_id: worldId,
  token,
  leader: { worker_id: 'leader', address: '127.0.0.1', port },
});

/** Joins a world and does nothing more. */
export async function joined(world: WorldAtLeader, workerId: string): Promise<Link> {
  const link = new Link(connectToLeader(world));
  await link.secured();
  link.send({ kind: 'join', worker_id: workerId, host: 'node-x' });
  return link;
}

/** A leader that does with each member that joined what the test says; its port. */
export function leaderOf(t: Test, token: string, talk: (link: Link) => void): Promise<number> {
  const options = serverOptions(() => token);
  const server = createTlsServer(options, async (socket) => {
    const link = new Link(socket);
    await link.next();
    talk(link);
  });
  return portOf(t, server);
}

/** A server that accepts connections and says nothing. */
export const silentServer = (t: Test) => portOf(t, createServer());

/** Listens on a port of this machine until the test is over. */
export async function portOf(t: Test, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** Passes bytes on to a port of this machine, and keeps those that the connecting side sends. */
export async function tappedWire(t: Test, port: number): Promise<{ port: number; sent: Buffer[] }> {
  const sent: Buffer[] = [];
  const server = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port });
    near.on('data', (chunk) => sent.push(chunk));
    pipeline(near, far, near, () => undefined);
  });
  return { port: await portOf(t, server), sent };
}

/** A log whose lines are kept. */
export function keptLog() {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  return { lines, log: createLogger({ level: 'warn', name: 'test', destination, env: {} }) };
}
