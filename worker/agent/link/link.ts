import { once } from 'node:events';
import type { TLSSocket } from 'node:tls';
import { encodeFrame, FrameReader } from '../../../platform/process/frames.js';
import { deferred } from '../../shared/deferred.js';
import { SilenceWatch } from '../../shared/silence-watch.js';
import { tlsReason } from './tls.js';

/** Maximum message size before the other side has joined a world. */
const NEWCOMER_BYTES = 4096;
/** Maximum message size; the longest message is a rank's list of the ranges that it loaded. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Maximum number of bytes waiting to be sent; a peer that does not read is disconnected. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;
/** Time for sent data to leave after the end of the link; it never leaves when the TLS handshake was not completed. */
const LINGER_MS = 5_000;

interface LinkWatch {
  ping_ms: number;
  silence_ms: number;
}

/** TLS connection between two workers. Any failure ends it, and `ended` gives the reason. */
export class Link {
  /** Resolves with a readable reason when the connection is closed. */
  readonly ended: Promise<string>;

  private readonly reader = new FrameReader(NEWCOMER_BYTES);
  private readonly end = deferred<string>();
  private readonly queue: unknown[] = [];
  private handler: ((message: unknown) => void) | null = null;
  private silence: SilenceWatch | null = null;
  private pings: NodeJS.Timeout | undefined;
  private gone = false;

  constructor(private readonly socket: TLSSocket) {
    this.ended = this.end.promise;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.receive(chunk));
    socket.on('error', (error) => this.close(tlsReason(error)));
    socket.on('close', () => this.close('the connection was closed'));
  }

  /**
   * Resolves, on the connecting side, when the other side has proven the world's token. Rejects when the link ends
   * first.
   */
  async secured(): Promise<void> {
    await this.beforeEnd(once(this.socket, 'secureConnect'));
  }

  /** Raises the message size limit, once the other side has joined the world. */
  trust(): void {
    this.reader.limit = MAX_BYTES;
  }

  /** Starts regular pings, and ends the link when the other side is silent for too long. */
  watch({ ping_ms, silence_ms }: LinkWatch): void {
    if (this.gone) return;
    this.pings = setInterval(() => this.send({ kind: 'ping' }), ping_ms);
    this.silence = new SilenceWatch(silence_ms, silence_ms, (ms) =>
      this.close(`nothing was heard for ${ms} ms`),
    );
  }

  send(message: object): void {
    if (this.gone) return;
    this.socket.write(encodeFrame(message));
    if (this.socket.writableLength > MAX_UNSENT_BYTES) this.close('the other side does not read');
  }

  /**
   * Passes every message to `handler`, those already received first; an error that the handler throws ends the link.
   */
  onMessage(handler: (message: unknown) => void): void {
    this.handler = handler;
    this.deliver();
  }

  /** Returns the next message. Rejects when the link ends first. */
  async next(): Promise<unknown> {
    const message = deferred<unknown>();
    this.onMessage((value) => {
      this.handler = null;
      message.resolve(value);
    });
    return this.beforeEnd(message.promise);
  }

  /** Ends the link after flushing sent data. Idempotent, the first reason counts. */
  close(reason: string): void {
    if (this.gone) return;
    this.gone = true;
    clearInterval(this.pings);
    this.silence?.close();
    if (this.socket.writableLength > MAX_UNSENT_BYTES) this.socket.destroy();
    else if (!this.socket.destroyed) this.destroySoon();
    this.end.resolve(reason);
  }

  private destroySoon(): void {
    const timer = setTimeout(() => this.socket.destroy(), LINGER_MS);
    this.socket.once('close', () => clearTimeout(timer));
    this.socket.destroySoon();
  }

  private beforeEnd<T>(event: Promise<T>): Promise<T> {
    return Promise.race([event, this.ended.then((reason) => Promise.reject(new Error(reason)))]);
  }

  private receive(chunk: Buffer): void {
    if (this.gone) return;
    this.silence?.heard();
    this.reader.push(chunk);
    try {
      for (let message = this.reader.next(); message !== undefined; message = this.reader.next()) {
        if (!isPing(message)) this.queue.push(message);
      }
    } catch (error) {
      this.close((error as Error).message);
    }
    this.deliver();
  }

  private deliver(): void {
    try {
      while (this.handler && this.queue.length > 0) this.handler(this.queue.shift());
    } catch (error) {
      this.close((error as Error).message);
    }
  }
}

function isPing(message: unknown): boolean {
  return (message as { kind?: unknown } | null)?.kind === 'ping';
}
