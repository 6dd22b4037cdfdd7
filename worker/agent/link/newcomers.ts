import type { Socket } from 'node:net';
import type { Logger } from '../../../platform/logging/logging.js';

export interface AdmissionLimits {
  /** Timeout from the connection to its admission, whatever the peer sends meanwhile. */
  admission_ms: number;
  /**
   * Maximum number of waiting connections; the oldest is closed above it. A member needs milliseconds, so floods and
   * silent peers displace each other.
   */
  max_waiting: number;
}

const LIMITS: AdmissionLimits = { admission_ms: 5_000, max_waiting: 1024 };
const MAX_LINES_PER_SECOND = 10;

export interface Refusal {
  reason: string;
  /** World that the peer named. */
  world_id?: string | null;
}

interface Newcomer {
  socket: Socket;
  timer: NodeJS.Timeout;
}

/** Connections that have joined no world yet. Each is admitted within a time limit or refused with one log line. */
export class Newcomers {
  /** Waiting connections by `peerOf`, the oldest first. */
  private readonly waiting = new Map<string, Newcomer>();
  private second = 0;
  private lines = 0;
  private suppressed = 0;

  constructor(
    private readonly log: Logger,
    private readonly limits = LIMITS,
  ) {}

  add(socket: Socket): void {
    const { admission_ms, max_waiting } = this.limits;
    const peer = peerOf(socket);
    const timer = setTimeout(
      () => this.refuse(peer, { reason: `it joined no world within ${admission_ms} ms` }),
      admission_ms,
    );
    this.waiting.set(peer, { socket, timer });
    socket.once('close', () => this.refuse(peer, { reason: 'it left before it joined a world' }));
    if (this.waiting.size <= max_waiting) return;
    const [oldest] = this.waiting.keys();
    this.refuse(oldest as string, { reason: `more than ${max_waiting} connections have joined no world` });
  }

  /** Admits the peer, which has joined a world: its connection is a link. */
  accept(peer: string): void {
    this.take(peer);
  }

  /** Closes a connection. Does nothing after its admission or refusal. */
  refuse(peer: string, refusal: Refusal): void {
    const newcomer = this.take(peer);
    if (!newcomer) return;
    newcomer.socket.destroy();
    this.report({ from: peer, ...refusal });
  }

  /** Closes all waiting connections. Idempotent. */
  close(): void {
    for (const peer of [...this.waiting.keys()]) this.take(peer)?.socket.destroy();
  }

  private take(peer: string): Newcomer | undefined {
    const newcomer = this.waiting.get(peer);
    clearTimeout(newcomer?.timer);
    this.waiting.delete(peer);
    return newcomer;
  }

  /** Logs a refusal, with a limit of lines per second; the first line after that states how many were left out. */
  private report(refusal: Refusal & { from: string }): void {
    const second = Math.floor(Date.now() / 1000);
    if (second !== this.second) {
      this.second = second;
      this.lines = 0;
    }
    if (++this.lines > MAX_LINES_PER_SECOND) {
      this.suppressed++;
      return;
    }
    this.log.warn({ ...refusal, suppressed: this.suppressed || undefined }, 'connection refused');
    this.suppressed = 0;
  }
}

/** Returns address and port of the peer, equal for a TLS connection and its underlying TCP connection. */
export function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
