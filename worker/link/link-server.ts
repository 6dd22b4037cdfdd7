import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { Logger } from '../../platform/logging/logging.js';
import { waitOrAbort } from '../../platform/process/retry.js';
import { type Deferred, deferred } from '../common/deferred.js';
import { admitMember, type Names } from './handshake.js';
import { Link } from './link.js';

export interface Admitted {
  link: Link;
  names: Names;
}

/** A member that may come. */
interface Expected {
  token: string;
  admitted: Deferred<Admitted>;
}

/** From a connection to its proof; until then it is a stranger's. */
const HANDSHAKE_MS = 5_000;
const MAX_CONNECTIONS = 1024;

/** Where the members of this agent's worlds come in. Nobody else gets further than the handshake. */
export class LinkServer {
  private readonly expected = new Map<string, Expected>();
  private readonly links = new Set<Link>();

  private constructor(
    private readonly server: Server,
    private readonly log: Logger,
  ) {
    server.maxConnections = MAX_CONNECTIONS;
    server.on('connection', (socket) => void this.admit(socket));
  }

  /** @param address IP address to listen on; the port is any free one. @throws Error when it is none of this machine */
  static async listen(address: string, log: Logger): Promise<LinkServer> {
    const server = createServer();
    server.listen(0, address);
    await once(server, 'listening');
    return new LinkServer(server, log);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /**
   * Waits for a member. It can come once.
   * @param signal ends the waiting. @returns null when it was aborted first
   */
  async expect(
    { world_id, worker_id }: Pick<Names, 'world_id' | 'worker_id'>,
    token: string,
    signal: AbortSignal,
  ): Promise<Admitted | null> {
    const key = keyOf({ world_id, worker_id });
    const admitted = deferred<Admitted>();
    const aborted = deferred<null>();
    const onAbort = () => aborted.resolve(null);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    this.expected.set(key, { token, admitted });
    try {
      return await Promise.race([admitted.promise, aborted.promise]);
    } finally {
      this.expected.delete(key);
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Takes no more connections and ends all that there are. Idempotent. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    for (const link of this.links) link.close('the leader is shutting down');
    await closed;
  }

  private async admit(socket: Socket): Promise<void> {
    const link = new Link(socket);
    this.links.add(link);
    void link.ended.then(() => this.links.delete(link));
    const done = new AbortController();
    void waitOrAbort(HANDSHAKE_MS, done.signal).then(() => {
      if (!done.signal.aborted) link.close('no proof came in time');
    });
    try {
      const names = await admitMember(link, (asked) => this.expected.get(keyOf(asked))?.token ?? null);
      const expected = this.expected.get(keyOf(names));
      // Taken out at once: a second connection with the same proof has nobody to meet.
      this.expected.delete(keyOf(names));
      if (expected) expected.admitted.resolve({ link, names });
      else link.close('the world does not wait for this member any more');
    } catch (error) {
      this.log.warn({ err: error, from: socket.remoteAddress }, 'connection refused');
      link.close((error as Error).message);
    } finally {
      done.abort();
    }
  }
}

function keyOf({ world_id, worker_id }: Pick<Names, 'world_id' | 'worker_id'>): string {
  return `${world_id} ${worker_id}`;
}
