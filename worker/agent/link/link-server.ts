import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import type { Logger } from '../../../platform/logging/logging.js';
import { type Deferred, deferred } from '../../shared/deferred.js';
import { Link } from './link.js';
import { type AdmissionLimits, Newcomers, peerOf, type Refusal } from './newcomers.js';
import { asJoin } from './protocol.js';
import { serverOptions, tlsReason, worldOf } from './tls.js';

interface Admitted {
  link: Link;
  /** Name of the member's machine, for display. */
  host: string;
}

/** A member that may connect. */
interface ExpectedMember {
  world_id: string;
  worker_id: string;
  token: string;
}

interface Expected extends ExpectedMember {
  admitted: Deferred<Admitted>;
}

/**
 * Server for the members of this worker's worlds. Peers that do not prove a world's token do not pass the TLS
 * handshake.
 */
export class LinkServer {
  private readonly expected = new Set<Expected>();
  private readonly links = new Set<Link>();
  private readonly newcomers: Newcomers;
  private readonly server: Server;

  private constructor(log: Logger, limits?: AdmissionLimits) {
    this.newcomers = new Newcomers(log, limits);
    this.server = createServer(serverOptions((worldId) => this.find(worldId)?.token ?? null));
    this.server.on('connection', (socket: Socket) => this.newcomers.add(socket));
    this.server.on('tlsClientError', (error, socket) =>
      this.newcomers.refuse(peerOf(socket), this.refusal(error, socket)),
    );
    this.server.on('secureConnection', (socket) => void this.admit(socket));
  }

  /**
   * @param address IP address to listen on; the port is any free one. @throws Error when this machine does not have it
   */
  static async listen(address: string, log: Logger, limits?: AdmissionLimits): Promise<LinkServer> {
    const links = new LinkServer(log, limits);
    links.server.listen(0, address);
    await once(links.server, 'listening');
    return links;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /**
   * Waits for a member, which can join once.
   * @param signal aborts the wait. @returns null when it was aborted first
   */
  async expect(member: ExpectedMember, signal: AbortSignal): Promise<Admitted | null> {
    const expected = { ...member, admitted: deferred<Admitted>() };
    const aborted = deferred<null>();
    const onAbort = () => aborted.resolve(null);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    this.expected.add(expected);
    try {
      return await Promise.race([expected.admitted.promise, aborted.promise]);
    } finally {
      this.expected.delete(expected);
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Stops accepting connections and closes all existing ones. Idempotent. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.newcomers.close();
    for (const link of this.links) link.close('the leader is shutting down');
    await closed;
  }

  /** Admits a peer that has proven a world's token; its first message names its worker. */
  private async admit(socket: TLSSocket): Promise<void> {
    const link = new Link(socket);
    const peer = peerOf(socket);
    this.links.add(link);
    void link.ended.then(() => this.links.delete(link));
    try {
      const { worker_id, host } = asJoin(await link.next());
      const expected = this.find(worldOf(socket), worker_id);
      if (!expected) throw new Error(`the world does not wait for worker ${worker_id}`);
      // Removed at once: a second connection of the same member is refused.
      this.expected.delete(expected);
      this.newcomers.accept(peer);
      expected.admitted.resolve({ link, host });
    } catch (error) {
      const { message } = error as Error;
      this.newcomers.refuse(peer, { reason: message, world_id: worldOf(socket) });
      link.close(message);
    }
  }

  private refusal(error: Error, socket: TLSSocket): Refusal {
    const worldId = worldOf(socket);
    if (worldId !== null && !this.find(worldId))
      return { reason: 'the world is not expected here', world_id: worldId };
    return { reason: `the TLS handshake failed: ${tlsReason(error)}`, world_id: worldId };
  }

  private find(worldId: string | null, workerId?: string): Expected | undefined {
    for (const member of this.expected) {
      if (member.world_id === worldId && (workerId ?? member.worker_id) === member.worker_id) return member;
    }
    return undefined;
  }
}
