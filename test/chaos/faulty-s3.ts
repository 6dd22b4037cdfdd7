/** A proxy in front of an S3 server that refuses, delays and cuts off requests at random. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from './random.js';

/** Temporary faults of requests. */
export interface StoreFaults {
  /** Shares of the requests, together at most 1. */
  refused: number;
  cut: number;
  slow: number;
  /** Delay of slow requests. */
  delay_ms: number;
}

export const NO_FAULTS: StoreFaults = { refused: 0, cut: 0, slow: 0, delay_ms: 0 };

const SLOW_DOWN =
  '<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>';
/** The connection is cut somewhere in this many bytes of the answer. */
const CUT_WITHIN_BYTES = 64 * 1024;

export class FaultyS3 {
  faults: StoreFaults = NO_FAULTS;
  readonly counts = { requests: 0, refused: 0, cut: 0, slow: 0 };
  private readonly server = createServer((from, to) => void this.handle(from, to));

  constructor(
    private readonly target: { host: string; port: number },
    private readonly random: Random,
  ) {}

  /** @returns the endpoint, `http://127.0.0.1:PORT` */
  async start(): Promise<string> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private async handle(from: IncomingMessage, to: ServerResponse): Promise<void> {
    this.counts.requests++;
    const { refused, cut, slow, delay_ms } = this.faults;
    const draw = this.random.next();
    if (draw < refused) {
      this.counts.refused++;
      from.resume();
      to.writeHead(503, { 'content-type': 'application/xml', connection: 'close' }).end(SLOW_DOWN);
      return;
    }
    const isCut = draw < refused + cut;
    if (!isCut && draw < refused + cut + slow) {
      this.counts.slow++;
      await sleep(delay_ms);
    }
    this.pass(from, to, isCut ? this.random.between(0, CUT_WITHIN_BYTES) : null);
  }

  /** Forwards the request unchanged, host included, because that is signed. `cutAfter`: bytes of either direction. */
  private pass(from: IncomingMessage, to: ServerResponse, cutAfter: number | null): void {
    const { host, port } = this.target;
    const upstream = request({ host, port, method: from.method, path: from.url, headers: from.headers });
    let left = cutAfter ?? Number.POSITIVE_INFINITY;
    const count = (bytes: number) => {
      left -= bytes;
      if (left > 0 || cutAfter === null) return;
      this.counts.cut++;
      left = Number.POSITIVE_INFINITY;
      upstream.destroy();
      from.socket.resetAndDestroy();
    };
    upstream.on('error', () => from.socket.destroy());
    from.on('error', () => upstream.destroy());
    to.on('close', () => upstream.destroy());
    from.on('data', (chunk: Buffer) => count(chunk.length));
    from.pipe(upstream);
    upstream.on('response', (answer) => {
      answer.on('error', () => from.socket.destroy());
      to.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('data', (chunk: Buffer) => count(chunk.length));
      answer.pipe(to);
    });
  }
}
